package engine

import "context"

// fewClients is up to how many are driven on goroutines. Beside a server on the same
// machine, eight that block got more answers than eight on two loops, at a sixth more of
// CPU; see docs/performance.md.
const fewClients = 8

// Default is the engine that is best here: coroutines, but for few clients. For them the
// shortest way is to block in the kernel.
func Default() Engine { return chosen{} }

type chosen struct{}

func (chosen) Run(ctx context.Context, job *Job) Measurement {
	pace := newPace(job)
	if job.Load.Clients <= fewClients && !pace.paced() {
		return Goroutines{}.Run(ctx, job)
	}
	return Coroutines{}.Run(ctx, job)
}
