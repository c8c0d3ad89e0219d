package engine

import (
	"context"
	"runtime"
)

// Default is the engine that is best here: coroutines, but for clients that have a
// processor each. For them the shortest way is to block in the kernel.
func Default() Engine { return chosen{} }

type chosen struct{}

func (chosen) Run(ctx context.Context, job *Job) Measurement {
	pace := newPace(job)
	if int(job.Load.Clients) <= runtime.GOMAXPROCS(0) && !pace.paced() {
		return Goroutines{}.Run(ctx, job)
	}
	return Coroutines{}.Run(ctx, job)
}
