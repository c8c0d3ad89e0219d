package rendezvous

import (
	"fmt"
	"math/bits"

	"dbbench.dev/operator/runner/contract"
)

// Divide returns a replica's share of a load and the index of its first client among
// those of all replicas. The shares add up to the load exactly: clients, and rate, those
// of a ramp too, to within one of each other; events as the clients are. Times, and what counts per
// client, are the same for all. Load has the workload's conventions put in.
func Divide(load contract.Load, replica, replicas int32) (share contract.Load, first int, err error) {
	if replicas == 1 {
		return load, 0, nil
	}
	if load.Events > 0 && load.Events < int64(load.Clients) {
		return share, 0, &contract.Failure{Class: contract.ClassInvalidRunSpec,
			Message: fmt.Sprintf("load.events is %d, less than load.clients (%d): some of the %d replicas would have nothing to do", load.Events, load.Clients, replicas),
			Hint:    "raise spec.load.events, or set spec.runner.replicas to 1"}
	}
	begin, end := start(int64(load.Clients), replica, replicas), start(int64(load.Clients), replica+1, replicas)
	share = load
	share.Clients = int32(end - begin)
	share.Events = part(load.Events, end, load.Clients) - part(load.Events, begin, load.Clients)
	share.Rate = dealt(load.Rate, replica, replicas)
	share.Ramp = nil
	for _, s := range load.Ramp {
		s.Clients, s.Rate = int32(dealt(int64(s.Clients), replica, replicas)), dealt(s.Rate, replica, replicas)
		share.Ramp = append(share.Ramp, s)
	}
	return share, int(begin), nil
}

// dealt is a replica's part of n.
func dealt(n int64, replica, replicas int32) int64 {
	return start(n, replica+1, replicas) - start(n, replica, replicas)
}

// start is how many of n the replicas before one have, when n is dealt evenly.
func start(n int64, replica, replicas int32) int64 {
	each, rest := n/int64(replicas), n%int64(replicas)
	return each*int64(replica) + min(rest, int64(replica))
}

// part is n·some/all, rounded down; the product may be longer than 64 bits.
func part(n, some int64, all int32) int64 {
	high, low := bits.Mul64(uint64(n), uint64(some))
	quotient, _ := bits.Div64(high, low, uint64(all))
	return int64(quotient)
}
