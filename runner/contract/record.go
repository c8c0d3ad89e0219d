package contract

// RecordVersion names the revision of the record's lines that this build writes
// and reads.
const RecordVersion = "dbbench.dev/record/v1"

// TerminationVersion names the revision of TerminationMessage.
const TerminationVersion = "dbbench.dev/termination/v1"

// Kind tells the lines of a record apart. A record is written to standard output
// as JSON lines, in this order: one start, any number of progress, one
// environment, then per operation one operation and its histogram parts, any
// number of series, one result, one end.
type Kind string

// The kinds of line.
const (
	KindStart       Kind = "start"
	KindProgress    Kind = "progress"
	KindEnvironment Kind = "environment"
	KindVariables   Kind = "variables"
	KindCounters    Kind = "counters"
	KindOperation   Kind = "operation"
	KindHistogram   Kind = "histogram"
	KindSeries      Kind = "series"
	KindResult      Kind = "result"
	KindEnd         Kind = "end"
)

// Record is what one runner pod reports of one run.
type Record struct {
	Start       Start       `json:"start"`
	Environment Environment `json:"environment"`
	Operations  []Operation `json:"operations,omitempty"`
	Series      []Interval  `json:"series,omitempty"`
	Result      Result      `json:"result"`
}

// Start opens a record.
type Start struct {
	Version   string `json:"version"`
	Run       string `json:"run"`
	Execution string `json:"execution"`
	// BenchmarkUID ties the record to its resource: a log of another one is refused.
	BenchmarkUID string `json:"benchmarkUID"`
	Replica      int32  `json:"replica"`
	// UnixNanos is the runner's clock when it began.
	UnixNanos     int64  `json:"unixNanos"`
	RunnerVersion string `json:"runnerVersion"`
}

// Phase is the part of its work that a runner is in.
type Phase string

// The phases of a run, in order.
const (
	PhasePreflight Phase = "Preflight"
	PhasePrepare   Phase = "Prepare"
	PhaseConnect   Phase = "Connect"
	PhaseWarmup    Phase = "Warmup"
	PhaseMeasure   Phase = "Measure"
	PhaseVerify    Phase = "Verify"
	PhaseCleanup   Phase = "Cleanup"
)

// Progress is written every few seconds, so that a run can be watched.
type Progress struct {
	Phase        Phase `json:"phase"`
	ElapsedNanos int64 `json:"elapsedNanos"`
	// PercentDone is 0 to 100, by whichever stop rule is nearest; -1 where unknown.
	PercentDone int32 `json:"percentDone"`
	// Events and Errors count since the measured part began.
	Events int64 `json:"events"`
	Errors int64 `json:"errors"`
	// EventsPerSecondMilli and P99Nanos are of the last interval.
	EventsPerSecondMilli int64 `json:"eventsPerSecondMilli"`
	P99Nanos             int64 `json:"p99Nanos"`
}

// Environment is what the numbers were measured on. On the wire its maps follow it in
// pieces, as lines of variables and counters.
type Environment struct {
	ServerVersion string `json:"serverVersion"`
	// ServerFlavor is MariaDB or MySQL.
	ServerFlavor string `json:"serverFlavor"`
	// ServerVariables are those that decide the performance. ServerVariablesSHA256 is hex
	// over all global variables, but for those that name or number a server, such as
	// hostname and paths: servers of equal configuration have equal hashes. Where several
	// replicas share a run, replica 0 alone reports these two and StatusDeltas.
	ServerVariables       map[string]string `json:"serverVariables,omitempty"`
	ServerVariablesSHA256 string            `json:"serverVariablesSHA256,omitempty"`
	// StatusDeltas are the server's status counters after the measured part less
	// those before it. Other clients of the server count in them too.
	StatusDeltas map[string]int64 `json:"statusDeltas,omitempty"`
	Runner       RunnerUsage      `json:"runner"`
}

// RunnerUsage is what the load generator itself used during the measured part.
type RunnerUsage struct {
	GOMAXPROCS     int32  `json:"gomaxprocs"`
	CPUModel       string `json:"cpuModel,omitempty"`
	CPUUserNanos   int64  `json:"cpuUserNanos"`
	CPUSystemNanos int64  `json:"cpuSystemNanos"`
	// ThrottledNanos is the time that the container's CPU limit held it back; -1
	// where the cgroup does not say.
	ThrottledNanos int64 `json:"throttledNanos"`
	MaxRSSBytes    int64 `json:"maxRSSBytes"`
	// Node is the name of the pod's node, empty where it is not known, and Cores the
	// number of processors that the runner may use on it.
	Node  string `json:"node,omitempty"`
	Cores int32  `json:"cores,omitempty"`
	// CPULimitMilli and MemoryLimitBytes are the container's limits by its cgroup, in
	// thousandths of a processor and in bytes; 0 is no limit.
	CPULimitMilli    int64 `json:"cpuLimitMilli,omitempty"`
	MemoryLimitBytes int64 `json:"memoryLimitBytes,omitempty"`
	// LoopBusyPermille is how much of the time the event loops that drive the clients did
	// not wait, in thousandths; near 1000 the generator is at its end. It is 0 where there
	// are none: few clients are driven otherwise.
	LoopBusyPermille int64 `json:"loopBusyPermille,omitempty"`
	// WakeupP99Nanos and WakeupMaxNanos are how late the runner's timers were: those of
	// clients that waited for the time of their next event, and one each 10 ms.
	WakeupP99Nanos int64 `json:"wakeupP99Nanos,omitempty"`
	WakeupMaxNanos int64 `json:"wakeupMaxNanos,omitempty"`
	// GCCycles and GCPauseNanos are the garbage collections and how long they held all
	// clients up in total; SchedulingP99Nanos is for how long goroutines were ready and
	// did not run.
	GCCycles           int64 `json:"gcCycles,omitempty"`
	GCPauseNanos       int64 `json:"gcPauseNanos,omitempty"`
	SchedulingP99Nanos int64 `json:"schedulingP99Nanos,omitempty"`
}

// Operation holds the latencies of one kind of event, warm-up excluded.
type Operation struct {
	Name string `json:"name"`
	// Count is the number of successful events; the histogram holds as many values.
	Count    int64 `json:"count"`
	SumNanos int64 `json:"sumNanos"`
	MinNanos int64 `json:"minNanos"`
	MaxNanos int64 `json:"maxNanos"`
	// Histogram is an HdrHistogram of nanoseconds in the V2 compressed encoding,
	// base64. On the wire it follows the operation in parts.
	Histogram string `json:"histogram,omitempty"`
}

// HistogramPart carries a piece of the operation before it, so that no line of a
// log grows long.
type HistogramPart struct {
	Part  int    `json:"part"`
	Parts int    `json:"parts"`
	Data  string `json:"data"`
}

// Interval is one step of the time series.
type Interval struct {
	// StartNanos is from the start of the measured part; WidthNanos its length.
	StartNanos int64 `json:"startNanos"`
	WidthNanos int64 `json:"widthNanos"`
	Events     int64 `json:"events"`
	Errors     int64 `json:"errors,omitempty"`
	P50Nanos   int64 `json:"p50Nanos"`
	P99Nanos   int64 `json:"p99Nanos"`
	MaxNanos   int64 `json:"maxNanos"`
}

// Outcome is how a run ended.
type Outcome string

// The outcomes. A Partial run measured something and was then cut off.
const (
	OutcomeSucceeded Outcome = "Succeeded"
	OutcomeFailed    Outcome = "Failed"
	OutcomePartial   Outcome = "Partial"
)

// Class says why a run failed. The classes are the reasons that a resource's
// conditions show.
type Class string

// The classes.
const (
	ClassInvalidRunSpec       Class = "InvalidRunSpec"
	ClassAuthenticationFailed Class = "AuthenticationFailed"
	ClassTargetUnreachable    Class = "TargetUnreachable"
	ClassTLSFailed            Class = "TLSFailed"
	ClassPreflightFailed      Class = "PreflightFailed"
	ClassDatabaseNotOwned     Class = "DatabaseNotOwned"
	ClassPrepareFailed        Class = "PrepareFailed"
	ClassWorkloadFailed       Class = "WorkloadFailed"
	ClassVerifyFailed         Class = "VerifyFailed"
	ClassCleanupFailed        Class = "CleanupFailed"
	ClassDeadlineExceeded     Class = "DeadlineExceeded"
	ClassInterrupted          Class = "Interrupted"
	ClassRunnerError          Class = "RunnerError"
	// ClassReplicaLost is a replica that did not come to the rendezvous in time, or that
	// was not heard from any more. The message names it by its index.
	ClassReplicaLost Class = "ReplicaLost"
	// ClassPeerFailed is a replica that stopped because another one failed, whose own
	// record says more. The message repeats the failure of that one.
	ClassPeerFailed Class = "PeerFailed"
)

// Failure is one reason for which a run did not succeed.
type Failure struct {
	Class Class `json:"class"`
	// MySQLError is the server's error number, 0 where the failure has none.
	MySQLError uint16 `json:"mysqlError,omitempty"`
	// Message says what happened, Hint what to do next. Neither holds a secret.
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// Error makes a failure the error that carries it from where it was seen to the
// record.
func (f *Failure) Error() string {
	if f.Hint == "" {
		return f.Message
	}
	return f.Message + ": " + f.Hint
}

// Result sums a run up.
type Result struct {
	Outcome Outcome  `json:"outcome"`
	Failure *Failure `json:"failure,omitempty"`
	// Clients is the number that this replica drove.
	Clients int32 `json:"clients"`
	// MeasureStartUnixNanos and ElapsedNanos are the measured part. Elapsed is the
	// time that mysqlslap prints: from the release of the clients to the end of the last.
	MeasureStartUnixNanos int64 `json:"measureStartUnixNanos"`
	ElapsedNanos          int64 `json:"elapsedNanos"`
	// EndUnixNanos is when the runner had done all its work, clean-up included.
	EndUnixNanos int64 `json:"endUnixNanos,omitempty"`
	// Events succeeded; Errors did not. Attempts counts both and every retry.
	Events   int64 `json:"events"`
	Errors   int64 `json:"errors"`
	Attempts int64 `json:"attempts"`
	Retries  int64 `json:"retries"`
	// Late are arrivals of an open loop that were started more than 100 µs after their
	// time, for want of a client that was free or of the generator's own; Dropped those
	// that were not started within 10 s, or by the end of the load.
	Late       int64 `json:"late,omitempty"`
	Dropped    int64 `json:"dropped,omitempty"`
	Reconnects int64 `json:"reconnects"`
	// Statements by what the server answered: rows, changed rows, neither.
	Reads  int64 `json:"reads"`
	Writes int64 `json:"writes"`
	Other  int64 `json:"other"`
	// ErrorsByNumber counts by MySQL error number; 0 is an error without one.
	ErrorsByNumber map[uint16]int64 `json:"errorsByNumber,omitempty"`
	// RetriesByNumber counts the failed attempts that were followed by another one.
	RetriesByNumber map[uint16]int64 `json:"retriesByNumber,omitempty"`
	// Warnings travel with the numbers: what a reader must know to trust them.
	Warnings []string `json:"warnings,omitempty"`
	// Checks are a workload's own findings, such as a checksum of the table.
	Checks map[string]string `json:"checks,omitempty"`
}

// End closes a record. SHA256 is hex over all earlier lines, newlines included.
type End struct {
	Lines  int    `json:"lines"`
	SHA256 string `json:"sha256"`
}

// TerminationMessage is what the container leaves behind: enough to diagnose a
// run whose log is lost. Encoded it is at most 4,096 bytes.
type TerminationMessage struct {
	Version string   `json:"version"`
	Run     string   `json:"run"`
	Outcome Outcome  `json:"outcome"`
	Failure *Failure `json:"failure,omitempty"`
}
