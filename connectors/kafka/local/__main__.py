"""The command line ``python -m connectors.kafka.local start|stop|status``."""

import sys

if sys.platform == "win32":
    sys.exit(
        "riverrun's local Kafka does not run on Windows, which has neither the signals nor "
        "the file locks it uses: run Kafka in WSL or set KAFKA_BOOTSTRAP_SERVERS"
    )

from connectors.kafka.local.command import main

sys.exit(main())
