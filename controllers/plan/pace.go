package plan

import (
	"fmt"

	"dbbench.dev/operator/api/v1alpha1"
)

// checkPace holds the fields of a load against each other that say when events start.
// They are checked at each point: a sweep may set some of them.
func checkPace(load *v1alpha1.Load) *SpecError {
	open := load.Rate != nil
	switch {
	case load.Arrivals != "" && !open:
		return invalid("spec.load.arrivals", "it says how the events of an open loop are spaced; set load.rate, or leave it out")
	case load.ThinkTime != nil && load.ThinkTime.Duration > 0 && open:
		return invalid("spec.load.thinkTime", "it is of a closed loop, load.rate of an open one; leave one of them out")
	}
	for i, step := range load.Ramp {
		path := fmt.Sprintf("spec.load.ramp[%d]", i)
		switch {
		case step.For.Duration <= 0:
			return invalid(path+".for", "it must be greater than 0")
		case step.Clients != nil && open:
			return invalid(path+".clients", "with load.rate the steps set rate")
		case step.Clients != nil && *step.Clients > load.Clients:
			return invalid(path+".clients", "%d is more than load.clients (%d), which is the number after the ramp", *step.Clients, load.Clients)
		case step.Rate != nil && !open:
			return invalid(path+".rate", "it needs load.rate, which is the rate after the ramp")
		}
	}
	return nil
}
