module procwright/bench/go

go 1.21
