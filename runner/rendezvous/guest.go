package rendezvous

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"dbbench.dev/operator/runner/contract"
)

// guest is a replica other than 0.
type guest struct {
	spec     *contract.Rendezvous
	url      *url.URL
	instance string
	cancel   context.CancelCauseFunc
	client   http.Client
	watching sync.Once

	mu       sync.Mutex
	released Stage
	failure  *contract.Failure // of another replica
	changed  chan struct{}     // closed when released or failure changes

	life context.Context // of the watch
	end  context.CancelFunc
}

func newGuest(ctx context.Context, spec *contract.RunSpec, replica int32, cancel context.CancelCauseFunc) *guest {
	g := &guest{
		spec: spec.Rendezvous, url: address(spec, replica), instance: rand.Text(), cancel: cancel, changed: make(chan struct{}),
		client: http.Client{Transport: &http.Transport{ // no proxy: the host is a pod
			DialContext: (&net.Dialer{Timeout: requestTime}).DialContext, MaxIdleConnsPerHost: 2,
		}},
	}
	g.life, g.end = context.WithCancel(context.WithoutCancel(ctx))
	return g
}

// Await is part of Party.
func (g *guest) Await(ctx context.Context, stage Stage) error {
	patience := silence
	if stage == Arrived {
		patience = time.Duration(g.spec.JoinTimeout)
	}
	if err := g.say(ctx, patience, report{Instance: g.instance, Reached: stage}); err != nil {
		return err
	}
	if stage == Done {
		return nil
	}
	g.watching.Do(func() { go g.watch() })
	for {
		released, failure, changed := g.look()
		switch {
		case failure != nil:
			return failure
		case released >= stage:
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (g *guest) look() (Stage, *contract.Failure, <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.released, g.failure, g.changed
}

// say puts a report, as often as it takes. The host may not have started, and its name
// not be known yet.
func (g *guest) say(ctx context.Context, patience time.Duration, r report) error {
	body, err := json.Marshal(r)
	if err != nil {
		return err
	}
	giveUp := time.Now().Add(patience)
	for {
		err := g.do(ctx, requestTime, http.MethodPut, *g.url, body, nil)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errTaken):
			return lost("this replica's place is taken by another pod")
		case time.Now().After(giveUp):
			return lost("replica 0 did not answer at %s within %s: %v", g.url.Host, patience, err)
		case !sleep(ctx, pause):
			return context.Cause(ctx)
		}
	}
}

// watch holds a GET at all times, until the run fails or the guest leaves.
func (g *guest) watch() {
	heard := time.Now()
	for g.life.Err() == nil {
		released, failure, _ := g.look()
		if failure != nil {
			return
		}
		at := *g.url
		at.RawQuery = url.Values{"instance": {g.instance}, "known": {strconv.Itoa(int(released))}}.Encode()
		var status state
		err := g.do(g.life, hold+requestTime, http.MethodGet, at, nil, &status)
		switch {
		case err == nil:
			heard = time.Now()
			g.update(status.Released, status.Failed.forPeer())
		case time.Since(heard) > silence:
			g.update(released, lost("lost touch with replica 0: %v", err))
		default:
			sleep(g.life, pause)
		}
	}
}

func (g *guest) update(released Stage, failure *contract.Failure) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.released, g.failure = max(g.released, released), failure
	close(g.changed)
	g.changed = make(chan struct{})
	if failure != nil {
		g.cancel(failure)
	}
}

// Leave is part of Party.
func (g *guest) Leave(failure *contract.Failure) {
	if failure != nil && failure.Class != contract.ClassPeerFailed {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(g.life), farewell)
		defer cancel()
		_ = g.say(ctx, farewell, report{Instance: g.instance, Failure: failure}) // else the host finds out by itself
	}
	g.end()
	g.cancel(nil)
}

// errTaken is the answer to a replica whose place another pod has.
var errTaken = errors.New("the place is taken")

// do makes a request and decodes the answer into v, if there is one to be.
func (g *guest) do(ctx context.Context, timeout time.Duration, method string, at url.URL, body []byte, v any) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, at.String(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := g.client.Do(request)
	if err != nil {
		var ue *url.Error // its text would repeat the path, which identifies the run
		if errors.As(err, &ue) {
			err = ue.Err
		}
		return err
	}
	defer response.Body.Close()
	answer := io.LimitReader(response.Body, maxBody)
	switch response.StatusCode {
	case http.StatusNoContent:
		return nil
	case http.StatusOK:
		return decode(answer, v)
	case http.StatusConflict:
		return errTaken
	}
	text, _ := io.ReadAll(io.LimitReader(answer, 200)) // a part of it will do
	return fmt.Errorf("%s: %s", response.Status, strings.TrimSpace(string(text)))
}

// sleep reports whether the time was slept to its end.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
