"""What a job says and what computes a record: the DataStream API, the graph, the operators."""
