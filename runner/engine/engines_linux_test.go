package engine

func init() { engines["coroutines"] = Coroutines{Loops: 2} }
