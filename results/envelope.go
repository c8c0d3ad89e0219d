// Package results turns records into what people read: points with their statistics,
// tables, reports. It is pure.
package results

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/runner/contract"
)

// EnvelopeVersion names the revision of Envelope that this build writes.
const EnvelopeVersion = "dbbench.dev/result/v1"

// Envelope is a run as a results ConfigMap keeps it, under the key of its run. It
// says by itself what was run, so that it can be read without the resource.
type Envelope struct {
	Version    string              `json:"version"`
	Run        string              `json:"run"`
	Point      string              `json:"point"`
	Target     string              `json:"target"`
	Parameters v1alpha1.Parameters `json:"parameters,omitempty"`
	Iteration  int32               `json:"iteration"`
	Clients    int32               `json:"clients"`
	// Finished is when the run ended, or was found to have failed.
	Finished time.Time `json:"finished"`
	// Failure is absent where the run succeeded.
	Failure *Failure `json:"failure,omitempty"`
	// Lost is set where the run was lost with its infrastructure and repeated: the
	// envelope is then no result but the note of the loss, counted from 1.
	Lost int32 `json:"lost,omitempty"`
	// Kubernetes is the version of the cluster that it ran in; empty outside of one.
	Kubernetes string `json:"kubernetes,omitempty"`
	// Window is the part in which all of several replicas measured.
	Window *Window `json:"window,omitempty"`
	// Records are those of the runner pods, by replica. A failed run may have some.
	Records []contract.Record `json:"records,omitempty"`
}

// Failure is why a run did not succeed.
type Failure struct {
	// Reason is a reason of the condition Failed.
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

const keySuffix = ".json"

// Key is the key of an envelope in a results ConfigMap: that of its run, and of a loss
// one of its own.
func (e Envelope) Key() string {
	if e.Lost > 0 {
		return fmt.Sprintf("%s.lost-%d%s", e.Run, e.Lost, keySuffix)
	}
	return e.Run + keySuffix
}

// Encode writes an envelope as the value of a ConfigMap's key.
func (e Envelope) Encode() (string, error) {
	e.Version = EnvelopeVersion
	text, err := json.Marshal(e)
	return string(text), err
}

// Decode reads the value of a key. What users may have edited is read leniently, but
// one of another version or run is refused.
func Decode(key, text string) (Envelope, error) {
	var e Envelope
	if !strings.HasSuffix(key, keySuffix) {
		return e, fmt.Errorf("key %q does not end with %s", key, keySuffix)
	}
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		return e, fmt.Errorf("key %q: %w", key, err)
	}
	if e.Version != EnvelopeVersion || e.Key() != key {
		return e, fmt.Errorf("key %q: version %q of run %q; it is %q that is read", key, e.Version, e.Run, EnvelopeVersion)
	}
	return e, nil
}

// Trimmed is the envelope without what only readers of the ConfigMap look at: what is
// left makes the points.
func (e Envelope) Trimmed() Envelope {
	records := make([]contract.Record, len(e.Records))
	for i, r := range e.Records {
		r.Series, r.Environment.ServerVariables, r.Environment.StatusDeltas = nil, nil, nil
		records[i] = r
	}
	e.Records = records
	return e
}
