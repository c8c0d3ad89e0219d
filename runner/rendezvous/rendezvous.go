// Package rendezvous has the replicas of a run go through it together. Replica 0, the
// host, serves HTTP; the others, its guests, call it. A stage is left when all have
// reached it; a replica that fails takes the others with it; one that does not come,
// or is not heard from any more, fails the run and is named.
//
// Two requests make the protocol, both on a path that holds the run's identity, so
// that who does not know it is not heard:
//
//	PUT  /v1/<benchmark UID>/<execution>/<run>/<replica>   what the guest has reached, or why it failed
//	GET  the same, ?instance=…&known=<stage>               held until the run is past that stage, has failed, or a few seconds are over
//
// A guest holds a GET at all times: that is also how the host knows that it is alive.
package rendezvous

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"time"

	"dbbench.dev/operator/runner/contract"
)

// Stage is how far a replica has come.
type Stage int

// The stages, in order.
const (
	// Arrived: its own checks are done.
	Arrived Stage = iota + 1
	// Prepared: for the host, the data is there. Guests reach it at once, and wait.
	Prepared
	// Connected: its clients are, and wait for their release.
	Connected
	// Done: its load has ended.
	Done
)

const (
	// hold is how long a GET is held.
	hold = 5 * time.Second
	// silence is how long a replica may not be heard from; broken is the same where its
	// connection was cut, which is what happens when a process ends.
	silence = 10 * time.Second
	broken  = 3 * time.Second
	// farewell bounds how long a replica that ends tries to tell the others why.
	farewell = 2 * time.Second
	// requestTime bounds a request that is answered at once, and what comes before and
	// after the hold of one that is not.
	requestTime = 3 * time.Second
	// pause is between attempts to reach the host.
	pause = 100 * time.Millisecond
	// maxBody bounds what either side reads.
	maxBody = 16 << 10
)

// Party is a replica's part in the run.
type Party interface {
	// Await says that the stage is reached and returns when all replicas have. A guest
	// does not wait for others to be Done. The error is a *contract.Failure: another
	// replica has failed, or is missing; or it is that of ctx.
	Await(ctx context.Context, stage Stage) error
	// Leave ends the part. A failure is told to the others, unless it came from them.
	Leave(failure *contract.Failure)
}

// Join begins the part of a replica of the run. The context that it returns ends with
// a *contract.Failure as its cause when another replica has failed or was lost.
func Join(ctx context.Context, spec *contract.RunSpec, replica int32) (context.Context, Party, error) {
	if spec.Replicas == 1 {
		return ctx, solo{}, nil
	}
	if spec.Rendezvous == nil {
		return nil, nil, &contract.Failure{Class: contract.ClassInvalidRunSpec,
			Message: fmt.Sprintf("runner.replicas is %d, and the run's spec does not say where they meet", spec.Replicas),
			Hint:    "set rendezvous in the run's spec"}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	if replica == 0 {
		h, err := newHost(spec, cancel)
		return ctx, h, err
	}
	return ctx, newGuest(ctx, spec, replica, cancel), nil
}

// solo is the only replica of a run.
type solo struct{}

func (solo) Await(ctx context.Context, _ Stage) error { return context.Cause(ctx) }
func (solo) Leave(*contract.Failure)                  {}

// path is where replica's requests go.
func path(run contract.Run, replica string) string {
	return "/v1/" + run.BenchmarkUID + "/" + run.Execution + "/" + run.ID + "/" + replica
}

// address is the URL of a guest's requests.
func address(spec *contract.RunSpec, replica int32) *url.URL {
	r := spec.Rendezvous
	return &url.URL{Scheme: "http", Host: net.JoinHostPort(r.Host, strconv.Itoa(int(r.Port))),
		Path: path(spec.Run, strconv.Itoa(int(replica)))}
}

// report is the body of a PUT.
type report struct {
	// Instance tells a pod from another one with the same index.
	Instance string            `json:"instance"`
	Reached  Stage             `json:"reached"`
	Failure  *contract.Failure `json:"failure,omitempty"`
}

// state is the body of the answer to a GET.
type state struct {
	// Released is the stage that all have reached.
	Released Stage  `json:"released"`
	Failed   *cause `json:"failed,omitempty"`
}

// cause is the failure that ended the run, and whose it was.
type cause struct {
	Replica int32            `json:"replica"`
	Failure contract.Failure `json:"failure"`
}

// forPeer is the failure of a replica that stops for it, nil where there is none.
func (c *cause) forPeer() *contract.Failure {
	if c == nil {
		return nil
	}
	f := c.Failure
	if f.Class != contract.ClassReplicaLost && f.Class != contract.ClassPeerFailed {
		f.Message = fmt.Sprintf("replica %d failed: %s", c.Replica, f.Message)
	}
	f.Class = contract.ClassPeerFailed
	return &f
}

func lost(format string, args ...any) *contract.Failure {
	return &contract.Failure{Class: contract.ClassReplicaLost, Message: fmt.Sprintf(format, args...),
		Hint: "look at the replica's pod: whether it was scheduled, could pull its image, was evicted or ran out of memory, and whether a network policy keeps the run's pods apart"}
}
