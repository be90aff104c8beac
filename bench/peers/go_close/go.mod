module procwright/bench/close

go 1.21
