package contract

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
)

// Classes are all classes of failure, in the order of a run.
var Classes = []Class{
	ClassInvalidRunSpec, ClassAuthenticationFailed, ClassTargetUnreachable, ClassTLSFailed,
	ClassPreflightFailed, ClassDatabaseNotOwned, ClassPrepareFailed, ClassWorkloadFailed,
	ClassVerifyFailed, ClassCleanupFailed, ClassDeadlineExceeded, ClassInterrupted, ClassRunnerError,
	ClassReplicaLost, ClassPeerFailed,
}

var phases = []Phase{
	PhasePreflight, PhasePrepare, PhaseConnect, PhaseWarmup, PhaseMeasure, PhaseVerify, PhaseCleanup,
}

var base64Text = regexp.MustCompile(`^[A-Za-z0-9+/]*={0,2}$`)

// intervals is the body of a series line.
type intervals []Interval

func (s *Start) validate() error {
	return errors.Join(notNegative("replica", int64(s.Replica)), notNegative("unixNanos", s.UnixNanos),
		notLonger("runnerVersion", s.RunnerVersion))
}

func (p *Progress) validate() error {
	if !slices.Contains(phases, p.Phase) {
		return fmt.Errorf("unknown phase %q", p.Phase)
	}
	if p.PercentDone < -1 || p.PercentDone > 100 {
		return fmt.Errorf("percentDone is %d", p.PercentDone)
	}
	return notNegatives(map[string]int64{
		"elapsedNanos": p.ElapsedNanos, "events": p.Events, "errors": p.Errors,
		"eventsPerSecondMilli": p.EventsPerSecondMilli, "p99Nanos": p.P99Nanos,
	})
}

func (e *Environment) validate() error {
	r := e.Runner
	return errors.Join(
		notLonger("serverVersion", e.ServerVersion),
		notLonger("serverFlavor", e.ServerFlavor),
		notLonger("serverVariablesSHA256", e.ServerVariablesSHA256),
		notLonger("runner.node", r.Node),
		notNegatives(map[string]int64{
			"gomaxprocs": int64(r.GOMAXPROCS), "cpuUserNanos": r.CPUUserNanos, "cpuSystemNanos": r.CPUSystemNanos,
			"throttledNanos": r.ThrottledNanos + 1, "maxRSSBytes": r.MaxRSSBytes,
			"cores": int64(r.Cores), "cpuLimitMilli": r.CPULimitMilli, "memoryLimitBytes": r.MemoryLimitBytes,
			"loopBusyPermille": r.LoopBusyPermille, "wakeupP99Nanos": r.WakeupP99Nanos, "wakeupMaxNanos": r.WakeupMaxNanos,
			"gcCycles": r.GCCycles, "gcPauseNanos": r.GCPauseNanos, "schedulingP99Nanos": r.SchedulingP99Nanos,
		}))
}

func (o *Operation) validate() error {
	if o.Name == "" {
		return errors.New("an operation has no name")
	}
	if o.MinNanos > o.MaxNanos {
		return fmt.Errorf("operation %q: minimum above maximum", o.Name)
	}
	return errors.Join(notLonger("name", o.Name), notNegatives(map[string]int64{
		"count": o.Count, "sumNanos": o.SumNanos, "minNanos": o.MinNanos, "maxNanos": o.MaxNanos,
	}))
}

func (p *HistogramPart) validate() error {
	switch {
	case p.Parts > MaxHistogramParts:
		return refuse(ReasonTooLarge, "a histogram of %d parts, at most %d are allowed", p.Parts, MaxHistogramParts)
	case len(p.Data) > MaxHistogramPartBytes:
		return refuse(ReasonTooLarge, "a histogram part of %d bytes, at most %d are allowed", len(p.Data), MaxHistogramPartBytes)
	case p.Parts < 1 || p.Part < 1 || p.Part > p.Parts:
		return fmt.Errorf("histogram part %d of %d", p.Part, p.Parts)
	case p.Data == "" || !base64Text.MatchString(p.Data):
		return errors.New("histogram data is not base64")
	}
	return nil
}

func (s *intervals) validate() error {
	for _, i := range *s {
		err := notNegatives(map[string]int64{
			"startNanos": i.StartNanos, "widthNanos": i.WidthNanos, "events": i.Events, "errors": i.Errors,
			"p50Nanos": i.P50Nanos, "p99Nanos": i.P99Nanos, "maxNanos": i.MaxNanos,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *Result) validate() error {
	if len(r.ErrorsByNumber) > maxListItems || len(r.RetriesByNumber) > maxListItems || len(r.Warnings) > maxListItems || len(r.Checks) > maxListItems {
		return refuse(ReasonTooLarge, "a list of more than %d items", maxListItems)
	}
	for name, byNumber := range map[string]map[uint16]int64{"errorsByNumber": r.ErrorsByNumber, "retriesByNumber": r.RetriesByNumber} {
		for number, n := range byNumber {
			if n < 0 {
				return fmt.Errorf("%s[%d] is negative", name, number)
			}
		}
	}
	return errors.Join(validateOutcome(r.Outcome, r.Failure), notNegatives(map[string]int64{
		"clients": int64(r.Clients), "measureStartUnixNanos": r.MeasureStartUnixNanos, "elapsedNanos": r.ElapsedNanos, "endUnixNanos": r.EndUnixNanos,
		"events": r.Events, "errors": r.Errors, "attempts": r.Attempts, "retries": r.Retries, "dropped": r.Dropped, "late": r.Late,
		"reconnects": r.Reconnects, "reads": r.Reads, "writes": r.Writes, "other": r.Other,
	}))
}

func (e *End) validate() error {
	if b, err := hex.DecodeString(e.SHA256); err != nil || len(b) != 32 {
		return errors.New("sha256 is not 64 hexadecimal digits")
	}
	return notNegative("lines", int64(e.Lines))
}

func validateOutcome(o Outcome, f *Failure) error {
	switch {
	case !slices.Contains([]Outcome{OutcomeSucceeded, OutcomeFailed, OutcomePartial}, o):
		return fmt.Errorf("unknown outcome %q", o)
	case o == OutcomeSucceeded && f != nil:
		return errors.New("a run that succeeded has a failure")
	case o != OutcomeSucceeded && f == nil:
		return fmt.Errorf("outcome %s without a failure", o)
	case f != nil && !slices.Contains(Classes, f.Class):
		return fmt.Errorf("unknown class of failure %q", f.Class)
	}
	return nil
}

func notNegative(name string, n int64) error {
	if n < 0 {
		return fmt.Errorf("%s is negative", name)
	}
	return nil
}

// notNegatives names the first negative number in alphabetical order, so that the
// same input gives the same error.
func notNegatives(numbers map[string]int64) error {
	var bad []string
	for name, n := range numbers {
		if n < 0 {
			bad = append(bad, name)
		}
	}
	if len(bad) == 0 {
		return nil
	}
	return fmt.Errorf("%s is negative", slices.Min(bad))
}

func notLonger(name, s string) error {
	if len(s) > maxListItemBytes {
		return refuse(ReasonTooLarge, "%s is longer than %d bytes", name, maxListItemBytes)
	}
	return nil
}

// Validate names the first field that is wrong, and what would be right. The names
// are those of the resource's spec where it has the field.
func (s *RunSpec) Validate() error {
	if s.Version != RunSpecVersion {
		return fmt.Errorf("version is %q, must be %q", s.Version, RunSpecVersion)
	}
	return cmp.Or(s.Run.validate(), s.Target.validate(), s.Workload.validate(), s.Load.validate(), s.validateRunner())
}

func (r *Run) validate() error {
	for _, f := range []struct{ name, value string }{
		{"id", r.ID}, {"namespace", r.Namespace}, {"benchmark", r.Benchmark}, {"benchmarkUID", r.BenchmarkUID}, {"execution", r.Execution},
	} {
		if f.value == "" {
			return fmt.Errorf("run.%s is empty", f.name)
		}
		if len(f.value) > maxListItemBytes {
			return fmt.Errorf("run.%s is longer than %d bytes", f.name, maxListItemBytes)
		}
		// They become part of the marks on what the benchmark owns.
		if !identity.MatchString(f.value) {
			return fmt.Errorf("run.%s is %q, must be letters, digits, '-', '_' and '.'", f.name, f.value)
		}
	}
	return nil
}

var systemDatabases = []string{"mysql", "sys", "information_schema", "performance_schema"}

var (
	databaseName = regexp.MustCompile(`^[0-9A-Za-z$_-]{1,64}$`)
	identity     = regexp.MustCompile(`^[0-9A-Za-z._-]+$`)
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]*$`)
	word         = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,63}$`)
)

func (t *Target) validate() error {
	switch {
	case (t.Host == "") == (t.Socket == ""):
		return errors.New("target: exactly one of host and socket must be set")
	case t.Host != "" && (t.Port < 1 || t.Port > 65535):
		return fmt.Errorf("target.port is %d, must be 1 to 65535", t.Port)
	case !databaseName.MatchString(t.Database):
		return fmt.Errorf("target.database is %q, must be 1 to 64 letters, digits, $, _ and -", t.Database)
	case slices.ContainsFunc(systemDatabases, func(s string) bool { return strings.EqualFold(s, t.Database) }):
		return fmt.Errorf("target.database is %q, must not be a system database", t.Database)
	case t.UsernameFile == "" || t.PasswordFile == "":
		return errors.New("target: usernameFile and passwordFile must be set")
	}
	for name := range t.SessionVariables {
		if !variableName.MatchString(name) {
			return fmt.Errorf("target.sessionVariables: %q is not the name of a system variable", name)
		}
	}
	return t.TLS.validate()
}

func (t *TLS) validate() error {
	modes := []TLSMode{TLSDisabled, TLSPreferred, TLSRequired, TLSVerifyCA, TLSVerifyIdentity}
	verifies := t.Mode == TLSVerifyCA || t.Mode == TLSVerifyIdentity
	switch {
	case !slices.Contains(modes, t.Mode):
		return fmt.Errorf("target.tls.mode is %q, must be one of %v", t.Mode, modes)
	case verifies && t.CAFile == "":
		return fmt.Errorf("target.tls.mode %s needs a CA: set caSecretRef", t.Mode)
	case (t.CertFile == "") != (t.KeyFile == ""):
		return errors.New("target.tls: certFile and keyFile go together")
	}
	return nil
}

func (l *Load) validate() error {
	switch {
	case l.Clients < 1 || l.Clients > 65536:
		return fmt.Errorf("load.clients is %d, must be 1 to 65536", l.Clients)
	case l.EventsPerClient < 0:
		return fmt.Errorf("load.eventsPerClient is %d, must not be negative", l.EventsPerClient)
	case l.Events < 0:
		return fmt.Errorf("load.events is %d, must not be negative", l.Events)
	case l.Duration < 0:
		return errors.New("load.duration must not be negative")
	case l.Warmup < 0:
		return errors.New("load.warmup must not be negative")
	case l.Think < 0:
		return errors.New("load.thinkTime must not be negative")
	case l.Rate < 0:
		return fmt.Errorf("load.rate is %d, must not be negative", l.Rate)
	case !slices.Contains([]string{"", ArrivalsPoisson, ArrivalsUniform}, l.Arrivals):
		return fmt.Errorf("load.arrivals is %q, must be Poisson or Uniform", l.Arrivals)
	case l.Arrivals != "" && l.Rate == 0:
		return errors.New("load.arrivals says how an open loop spaces its events: it needs load.rate")
	case l.Think > 0 && l.Rate > 0:
		return errors.New("load.thinkTime is of a closed loop: it excludes load.rate")
	}
	for i, step := range l.Ramp {
		if err := step.validate(l); err != nil {
			return fmt.Errorf("load.ramp[%d]%w", i, err)
		}
	}
	return nil
}

func (s *RampStep) validate(l *Load) error {
	switch {
	case s.For <= 0:
		return errors.New(".for must be greater than 0")
	case (s.Clients != 0) == (s.Rate != 0):
		return errors.New(": exactly one of clients and rate must be set")
	case s.Clients < 0 || s.Clients > l.Clients:
		return fmt.Errorf(".clients is %d, must be 1 to load.clients (%d), which holds after the ramp", s.Clients, l.Clients)
	case s.Rate < 0:
		return fmt.Errorf(".rate is %d, must be at least 1", s.Rate)
	case s.Rate > 0 && l.Rate == 0:
		return errors.New(".rate needs load.rate, which holds after the ramp")
	case s.Clients > 0 && l.Rate > 0:
		return errors.New(".clients is of a closed loop: with load.rate the steps set rate")
	}
	return nil
}

func (s *RunSpec) validateRunner() error {
	switch {
	case !slices.Contains([]Prepare{PreparePerRun, PreparePerDataset, PrepareNever}, s.Prepare):
		return fmt.Errorf("prepare is %q, must be PerRun, PerDataset or Never", s.Prepare)
	case !slices.Contains([]Cleanup{CleanupAlways, CleanupOnSuccess, CleanupNever}, s.Cleanup):
		return fmt.Errorf("cleanup is %q, must be Always, OnSuccess or Never", s.Cleanup)
	case s.Replicas < 1:
		return fmt.Errorf("runner.replicas is %d, must be at least 1", s.Replicas)
	case s.Replicas > s.Load.Clients:
		return fmt.Errorf("runner.replicas is %d, must not exceed load.clients (%d)", s.Replicas, s.Load.Clients)
	case s.Timeout <= 0:
		return errors.New("runTimeout must be greater than 0")
	case s.ProgressInterval <= 0:
		return errors.New("progressInterval must be greater than 0")
	case s.Replicas > 1 && s.Load.Rate > 0 && s.Load.Rate < int64(s.Replicas):
		return fmt.Errorf("runner.replicas is %d, must not exceed load.rate (%d)", s.Replicas, s.Load.Rate)
	case s.Load.Rate > 0 && slices.ContainsFunc(s.Load.Ramp, func(step RampStep) bool { return step.Rate < int64(s.Replicas) }):
		return fmt.Errorf("runner.replicas is %d, must not exceed a rate of load.ramp", s.Replicas)
	case s.Rendezvous != nil:
		return s.Rendezvous.validate()
	}
	return nil
}

func (r *Rendezvous) validate() error {
	switch {
	case r.Host == "" || len(r.Host) > maxListItemBytes:
		return errors.New("rendezvous.host must be the name or address of replica 0")
	case r.Port < 1 || r.Port > 65535:
		return fmt.Errorf("rendezvous.port is %d, must be 1 to 65535", r.Port)
	case r.JoinTimeout <= 0:
		return errors.New("rendezvous.joinTimeout must be greater than 0")
	}
	return nil
}

// member is one that Workload may hold.
type member struct {
	name     string
	set      bool
	validate func() error
}

func (w *Workload) members() []member {
	return []member{
		{"slap", w.Slap != nil, w.Slap.validate},
		{"oltp", w.OLTP != nil, w.OLTP.validate},
		{"linkbench", w.LinkBench != nil, w.LinkBench.validate},
		{"payload", w.Payload != nil, w.Payload.validate},
		{"sql", w.SQL != nil, w.SQL.validate},
	}
}

// Name is the field that is set: the name of the workload.
func (w *Workload) Name() string {
	for _, m := range w.members() {
		if m.set {
			return m.name
		}
	}
	return ""
}

func (w *Workload) validate() error {
	members := slices.DeleteFunc(w.members(), func(m member) bool { return !m.set })
	if len(members) != 1 {
		return errors.New("workload: exactly one member must be set")
	}
	return members[0].validate()
}

// The load types of slap.
const (
	SlapWrite  = "Write"
	SlapRead   = "Read"
	SlapKey    = "Key"
	SlapUpdate = "Update"
	SlapMixed  = "Mixed"
)

func (s *Slap) validate() error {
	types := []string{SlapWrite, SlapRead, SlapKey, SlapUpdate, SlapMixed}
	switch {
	case !slices.Contains(types, s.LoadType):
		return fmt.Errorf("workload.slap.loadType is %q, must be one of %v", s.LoadType, types)
	case s.Engine != "" && !word.MatchString(s.Engine):
		return fmt.Errorf("workload.slap.engine is %q, must be the name of a storage engine", s.Engine)
	case len(s.EngineOption) > 256:
		return errors.New("workload.slap.engineOption is longer than 256 bytes")
	case s.AutoIncrement && s.GUIDPrimary:
		return errors.New("workload.slap: autoIncrement and guidPrimary exclude each other")
	case s.LoadType == SlapKey && !s.AutoIncrement && !s.GUIDPrimary:
		return errors.New("workload.slap: loadType Key needs autoIncrement or guidPrimary: without a key there is nothing to look up")
	case s.IntColumns == 0 && s.CharColumns == 0:
		return errors.New("workload.slap: intColumns and charColumns are both 0, there must be a column")
	}
	for _, f := range []struct {
		name     string
		n        int64
		min, max int64
	}{
		{"secondaryIndexes", int64(s.SecondaryIndexes), 0, 63},
		{"intColumns", int64(s.IntColumns), 0, 1000},
		{"charColumns", int64(s.CharColumns), 0, 1000},
		{"uniqueQueries", int64(s.UniqueQueries), 1, 100000},
		{"uniqueWrites", int64(s.UniqueWrites), 1, 100000},
		{"preloadRows", s.PreloadRows, 0, math.MaxInt32},
		{"commitEvery", s.CommitEvery, 0, math.MaxInt32},
		{"detachEvery", s.DetachEvery, 0, math.MaxInt32},
	} {
		if f.n < f.min || f.n > f.max {
			return fmt.Errorf("workload.slap.%s is %d, must be %d to %d", f.name, f.n, f.min, f.max)
		}
	}
	// All statements are made once and kept.
	const intBytes, charBytes, maxBytes = 11, 129, 64 << 20
	statement := int64(s.IntColumns)*intBytes + int64(s.CharColumns)*charBytes
	if total := statement * int64(s.UniqueQueries+s.UniqueWrites); total > maxBytes {
		return fmt.Errorf("workload.slap: uniqueQueries and uniqueWrites make %d MiB of statements, at most %d are allowed: lower them or the column counts",
			total>>20, maxBytes>>20)
	}
	return nil
}
