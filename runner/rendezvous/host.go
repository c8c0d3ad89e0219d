package rendezvous

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"dbbench.dev/operator/runner/contract"
)

// host is replica 0.
type host struct {
	joinTimeout time.Duration
	cancel      context.CancelCauseFunc
	server      *http.Server
	stop        context.CancelFunc // ends the watch over the guests

	mu      sync.Mutex
	reached Stage // by the host itself
	guests  []member
	status  state
	changed chan struct{} // closed when status changes
}

// member is a guest as the host sees it.
type member struct {
	instance string // empty until it has come
	reached  Stage
	watching int       // GETs that are held for it
	due      time.Time // it must be heard from before, while none is
	told     bool      // it knows that the run has failed
}

// newHost listens at once, so that guests find it as soon as they come.
func newHost(spec *contract.RunSpec, cancel context.CancelCauseFunc) (*host, error) {
	h := &host{
		joinTimeout: time.Duration(spec.Rendezvous.JoinTimeout), cancel: cancel,
		guests: make([]member, spec.Replicas-1), changed: make(chan struct{}),
	}
	listener, err := net.Listen("tcp", ":"+strconv.Itoa(int(spec.Rendezvous.Port)))
	if err != nil {
		return nil, &contract.Failure{Class: contract.ClassRunnerError,
			Message: fmt.Sprintf("the replicas cannot meet: %v", err), Hint: "choose another port for the rendezvous"}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("PUT "+path(spec.Run, "{replica}"), h.put)
	mux.HandleFunc("GET "+path(spec.Run, "{replica}"), h.get)
	h.server = &http.Server{Handler: mux, ReadHeaderTimeout: requestTime, ReadTimeout: requestTime,
		WriteTimeout: hold + requestTime, IdleTimeout: silence, MaxHeaderBytes: maxBody}
	go func() { _ = h.server.Serve(listener) }() // it ends with Leave
	ctx, stop := context.WithCancel(context.Background())
	h.stop = stop
	go h.watch(ctx)
	return h, nil
}

// guest is the member that a request is of; the caller holds the lock. An index that
// there is not, or whose place is taken, is answered here.
func (h *host) guest(w http.ResponseWriter, r *http.Request, instance string) (*member, int32) {
	index, err := strconv.ParseInt(r.PathValue("replica"), 10, 32)
	if err != nil || index < 1 || index > int64(len(h.guests)) || instance == "" {
		http.Error(w, "there is no such replica", http.StatusNotFound)
		return nil, 0
	}
	m := &h.guests[index-1]
	if m.instance != "" && m.instance != instance {
		http.Error(w, "another pod has this replica's place", http.StatusConflict)
		return nil, 0
	}
	return m, int32(index)
}

func (h *host) put(w http.ResponseWriter, r *http.Request) {
	var said report
	if err := decode(http.MaxBytesReader(w, r.Body, maxBody), &said); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	m, index := h.guest(w, r, said.Instance)
	if m == nil {
		return
	}
	m.instance, m.reached, m.due = said.Instance, max(m.reached, said.Reached), time.Now().Add(silence)
	if said.Failure != nil {
		m.told = true
		h.failLocked(&cause{index, *said.Failure})
	}
	h.advanceLocked()
	w.WriteHeader(http.StatusNoContent)
}

func (h *host) get(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	known, err := strconv.Atoi(query.Get("known"))
	if err != nil {
		http.Error(w, "known is not a stage", http.StatusBadRequest)
		return
	}
	h.mu.Lock()
	m, _ := h.guest(w, r, query.Get("instance"))
	if m == nil {
		h.mu.Unlock()
		return
	}
	m.watching++
	h.mu.Unlock()

	status := h.await(r.Context(), Stage(known))
	err = json.NewEncoder(w).Encode(status)

	h.mu.Lock()
	defer h.mu.Unlock()
	m.watching--
	m.due = time.Now().Add(silence)
	if err != nil || r.Context().Err() != nil {
		m.due = time.Now().Add(broken)
	} else if status.Failed != nil {
		m.told = true
		h.notifyLocked()
	}
}

// await returns the status when it is another than known, or after a while.
func (h *host) await(ctx context.Context, known Stage) state {
	enough := time.NewTimer(hold)
	defer enough.Stop()
	for {
		status, changed := h.look()
		if status.Failed != nil || status.Released > known {
			return status
		}
		select {
		case <-changed:
		case <-enough.C:
			return status
		case <-ctx.Done():
			return status
		}
	}
}

func (h *host) look() (state, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.status, h.changed
}

func (h *host) notifyLocked() {
	close(h.changed)
	h.changed = make(chan struct{})
}

// failLocked ends the run with its first failure.
func (h *host) failLocked(c *cause) {
	if h.status.Failed != nil {
		return
	}
	h.status.Failed = c
	h.notifyLocked()
	h.cancel(c.forHost())
}

// forHost is the failure with which the host ends: its own, or that it stops for a
// guest's.
func (c *cause) forHost() *contract.Failure {
	if c.Replica == 0 {
		return &c.Failure
	}
	return c.forPeer()
}

// advanceLocked releases the stage that all have reached.
func (h *host) advanceLocked() {
	all := h.reached
	for i := range h.guests {
		all = min(all, h.guests[i].reached)
	}
	if all > h.status.Released && h.status.Failed == nil {
		h.status.Released = all
		h.notifyLocked()
	}
}

// Await is part of Party. That guests come and connect has a bound; the load of the
// data has not, nor the load itself.
func (h *host) Await(ctx context.Context, stage Stage) error {
	h.mu.Lock()
	h.reached = stage
	h.advanceLocked()
	h.mu.Unlock()

	var late <-chan time.Time
	if stage == Arrived || stage == Connected {
		timer := time.NewTimer(h.joinTimeout)
		defer timer.Stop()
		late = timer.C
	}
	for {
		status, changed := h.look()
		switch {
		case status.Failed != nil:
			return status.Failed.forHost()
		case status.Released >= stage:
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-late:
			return h.giveUp(stage)
		}
	}
}

// giveUp fails the run for the guests that have not reached a stage.
func (h *host) giveUp(stage Stage) *contract.Failure {
	h.mu.Lock()
	defer h.mu.Unlock()
	missing := h.behindLocked(func(m member) bool { return m.reached < stage })
	f := lost("%s did not come to the start of the run within %s", missing, h.joinTimeout)
	if stage == Connected {
		f = lost("%s did not connect its clients within %s of replica 0", missing, h.joinTimeout)
	}
	h.failLocked(&cause{0, *f})
	return f
}

// behindLocked names the guests for which the condition holds, "" where there is none.
func (h *host) behindLocked(condition func(member) bool) string {
	var names []string
	for i, m := range h.guests {
		if condition(m) {
			names = append(names, strconv.Itoa(i+1))
		}
	}
	switch len(names) {
	case 0:
		return ""
	case 1:
		return "replica " + names[0]
	}
	return "replicas " + strings.Join(names, ", ")
}

// watch fails the run when a guest that had come is not heard from any more.
func (h *host) watch(ctx context.Context) {
	ticker := time.NewTicker(broken / 4)
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			h.mu.Lock()
			if gone := h.behindLocked(func(m member) bool { return m.silent(now) }); gone != "" {
				h.failLocked(&cause{0, *lost("lost touch with %s: nothing is heard from there any more", gone)})
			}
			h.mu.Unlock()
		case <-ctx.Done():
			return
		}
	}
}

func (m member) silent(now time.Time) bool {
	return m.instance != "" && m.reached < Done && m.watching == 0 && now.After(m.due)
}

// Leave is part of Party. The guests that have come are told before the server ends.
func (h *host) Leave(failure *contract.Failure) {
	h.stop()
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	if failure != nil {
		h.mu.Lock()
		h.failLocked(&cause{0, *failure})
		h.mu.Unlock()
		h.awaitTold(ctx)
	}
	if err := h.server.Shutdown(ctx); err != nil {
		_ = h.server.Close() // what remains are connections of others
	}
	h.cancel(nil)
}

// awaitTold waits until all guests know that the run has failed.
func (h *host) awaitTold(ctx context.Context) {
	for {
		h.mu.Lock()
		waiting := slices.ContainsFunc(h.guests, func(m member) bool { return m.instance != "" && m.reached < Done && !m.told })
		changed := h.changed
		h.mu.Unlock()
		if !waiting {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// decode reads one bounded JSON value strictly.
func decode(r io.Reader, v any) error {
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if d.More() {
		return errors.New("there is more than one value")
	}
	return nil
}
