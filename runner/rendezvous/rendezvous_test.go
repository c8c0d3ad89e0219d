package rendezvous

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"dbbench.dev/operator/runner/contract"
)

// meeting is the spec of a run whose replicas meet on the loopback interface.
func meeting(t *testing.T, replicas int32, joinTimeout time.Duration) *contract.RunSpec {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return &contract.RunSpec{
		Run:      contract.Run{ID: "p1-i1", Execution: "e1", BenchmarkUID: "uid-1"},
		Replicas: replicas, Rendezvous: &contract.Rendezvous{
			Host: "127.0.0.1", Port: int32(l.Addr().(*net.TCPAddr).Port), JoinTimeout: contract.Duration(joinTimeout),
		},
	}
}

// replica is one that a test takes through the stages.
type replica struct {
	ctx   context.Context
	party Party
}

func join(t *testing.T, spec *contract.RunSpec, index int32) replica {
	t.Helper()
	ctx, party, err := Join(t.Context(), spec, index)
	if err != nil {
		t.Fatal(err)
	}
	return replica{ctx, party}
}

func (r replica) await(stage Stage) error { return r.party.Await(r.ctx, stage) }

// mustFail returns the failure that an error is.
func mustFail(t *testing.T, err error, class contract.Class, want string) {
	t.Helper()
	var f *contract.Failure
	if !errors.As(err, &f) || f.Class != class || !strings.Contains(f.Message, want) {
		t.Errorf("got %#v, want class %s and %q in the message", err, class, want)
	}
}

// TestTogether: nobody leaves a stage before all have reached it.
func TestTogether(t *testing.T) {
	const replicas = 5
	spec := meeting(t, replicas, time.Minute)
	var mu sync.Mutex
	reached := map[Stage]int{}
	var all sync.WaitGroup
	for i := int32(replicas - 1); i >= 0; i-- { // the host comes last
		all.Go(func() {
			if i == 0 {
				time.Sleep(300 * time.Millisecond)
			}
			r := join(t, spec, i)
			for stage := Arrived; stage <= Done; stage++ {
				time.Sleep(time.Duration(i) * 20 * time.Millisecond)
				mu.Lock()
				reached[stage]++
				mu.Unlock()
				if err := r.await(stage); err != nil {
					t.Errorf("replica %d, stage %d: %v", i, stage, err)
				}
				mu.Lock()
				if n := reached[stage]; n < replicas && (stage < Done || i == 0) {
					t.Errorf("replica %d left stage %d when %d had reached it", i, stage, n)
				}
				mu.Unlock()
			}
			r.party.Leave(nil)
		})
	}
	all.Wait()
}

func TestAReplicaIsMissing(t *testing.T) {
	spec := meeting(t, 4, 500*time.Millisecond)
	host, one := join(t, spec, 0), join(t, spec, 1)
	told := make(chan error, 1)
	go func() { told <- one.await(Arrived) }()
	err := host.await(Arrived)
	mustFail(t, err, contract.ClassReplicaLost, "replicas 2, 3 did not come")
	mustFail(t, <-told, contract.ClassPeerFailed, "replicas 2, 3 did not come")
	mustFail(t, context.Cause(one.ctx), contract.ClassPeerFailed, "replicas 2, 3")
	one.party.Leave(nil)
	host.party.Leave(nil)
}

func TestTheHostIsMissing(t *testing.T) {
	spec := meeting(t, 2, 400*time.Millisecond)
	spec.Rendezvous.Host = "replica-0.invalid"
	r := join(t, spec, 1)
	mustFail(t, r.await(Arrived), contract.ClassReplicaLost, "replica 0 did not answer at replica-0.invalid:")
	r.party.Leave(nil)
}

// gather has all replicas arrive.
func gather(t *testing.T, spec *contract.RunSpec) []replica {
	t.Helper()
	all := make([]replica, spec.Replicas)
	var arrived sync.WaitGroup
	for i := range all {
		all[i] = join(t, spec, int32(i))
		arrived.Go(func() {
			if err := all[i].await(Arrived); err != nil {
				t.Errorf("replica %d: %v", i, err)
			}
		})
	}
	arrived.Wait()
	return all
}

// TestOneFails: the failure of a replica ends the context of all others, wherever they
// are, and says whose it was.
func TestOneFails(t *testing.T) {
	for failing := range 3 {
		t.Run(fmt.Sprint(failing), func(t *testing.T) {
			all := gather(t, meeting(t, 3, time.Minute))
			failure := &contract.Failure{Class: contract.ClassWorkloadFailed, MySQLError: 1213, Message: "deadlock", Hint: "lower it"}
			all[failing].party.Leave(failure)
			for i, r := range all {
				if i == failing {
					continue
				}
				select {
				case <-r.ctx.Done():
				case <-time.After(10 * time.Second):
					t.Fatalf("replica %d was not told", i)
				}
				mustFail(t, context.Cause(r.ctx), contract.ClassPeerFailed, fmt.Sprintf("replica %d failed: deadlock", failing))
				mustFail(t, r.await(Connected), contract.ClassPeerFailed, "deadlock")
				var f *contract.Failure
				if errors.As(context.Cause(r.ctx), &f) && (f.MySQLError != 1213 || f.Hint != "lower it") {
					t.Errorf("replica %d was told %+v", i, f)
				}
			}
			for i := len(all) - 1; i >= 0; i-- {
				if i != failing {
					all[i].party.Leave(nil)
				}
			}
		})
	}
}

// TestOneIsGone: a replica that ends without a word, as one that is killed, is noticed.
func TestOneIsGone(t *testing.T) {
	all := gather(t, meeting(t, 3, time.Minute))
	all[2].party.(*guest).end()
	mustFail(t, all[0].await(Connected), contract.ClassReplicaLost, "lost touch with replica 2")
	<-all[1].ctx.Done()
	mustFail(t, context.Cause(all[1].ctx), contract.ClassPeerFailed, "lost touch with replica 2")
	all[1].party.Leave(nil)
	all[0].party.Leave(nil)
}

func TestTheHostIsGone(t *testing.T) {
	all := gather(t, meeting(t, 2, time.Minute))
	host := all[0].party.(*host)
	host.stop()
	if err := host.server.Close(); err != nil {
		t.Fatal(err)
	}
	<-all[1].ctx.Done()
	mustFail(t, context.Cause(all[1].ctx), contract.ClassReplicaLost, "lost touch with replica 0")
	all[1].party.Leave(nil)
}

func TestSlowToConnect(t *testing.T) {
	all := gather(t, meeting(t, 2, 300*time.Millisecond))
	mustFail(t, all[0].await(Connected), contract.ClassReplicaLost, "replica 1 did not connect")
	all[1].party.Leave(nil)
	all[0].party.Leave(nil)
}

// TestStrangers: requests that are not of the run change nothing.
func TestStrangers(t *testing.T) {
	spec := meeting(t, 2, time.Minute)
	host := join(t, spec, 0)
	base := "http://" + address(spec, 1).Host
	good := `{"instance":"x","reached":1}`
	for _, tt := range []struct {
		name, method, path, body string
		status                   int
	}{
		{"another benchmark", "PUT", "/v1/uid-2/e1/p1-i1/1", good, http.StatusNotFound},
		{"another execution", "PUT", "/v1/uid-1/e2/p1-i1/1", good, http.StatusNotFound},
		{"another run", "PUT", "/v1/uid-1/e1/p1-i2/1", good, http.StatusNotFound},
		{"the host's index", "PUT", "/v1/uid-1/e1/p1-i1/0", good, http.StatusNotFound},
		{"an index too many", "PUT", "/v1/uid-1/e1/p1-i1/2", good, http.StatusNotFound},
		{"no index", "PUT", "/v1/uid-1/e1/p1-i1/x", good, http.StatusNotFound},
		{"no instance", "PUT", "/v1/uid-1/e1/p1-i1/1", `{"reached":1}`, http.StatusNotFound},
		{"another method", "DELETE", "/v1/uid-1/e1/p1-i1/1", "", http.StatusMethodNotAllowed},
		{"unknown field", "PUT", "/v1/uid-1/e1/p1-i1/1", `{"instance":"x","reached":1,"more":1}`, http.StatusBadRequest},
		{"two values", "PUT", "/v1/uid-1/e1/p1-i1/1", good + good, http.StatusBadRequest},
		{"a long body", "PUT", "/v1/uid-1/e1/p1-i1/1", `{"instance":"` + strings.Repeat("x", maxBody) + `"}`, http.StatusBadRequest},
		{"known is no stage", "GET", "/v1/uid-1/e1/p1-i1/1?instance=x&known=y", "", http.StatusBadRequest},
		{"it comes", "PUT", "/v1/uid-1/e1/p1-i1/1", good, http.StatusNoContent},
		{"another pod in its place", "PUT", "/v1/uid-1/e1/p1-i1/1", `{"instance":"y","reached":1}`, http.StatusConflict},
	} {
		request, err := http.NewRequestWithContext(t.Context(), tt.method, base+tt.path, bytes.NewBufferString(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != tt.status {
			t.Errorf("%s: %s, want %d", tt.name, response.Status, tt.status)
		}
	}
	second := join(t, spec, 1)
	mustFail(t, second.await(Arrived), contract.ClassReplicaLost, "taken by another pod")
	host.party.Leave(nil)
}

func TestOneReplicaMeetsNobody(t *testing.T) {
	r := join(t, &contract.RunSpec{Replicas: 1}, 0)
	for stage := Arrived; stage <= Done; stage++ {
		if err := r.await(stage); err != nil {
			t.Error(err)
		}
	}
	r.party.Leave(nil)
}

func TestNowhereToMeet(t *testing.T) {
	_, _, err := Join(t.Context(), &contract.RunSpec{Replicas: 2}, 0)
	mustFail(t, err, contract.ClassInvalidRunSpec, "where they meet")
}
