package plan

import (
	"fmt"
	"math/big"
	"strings"
	"time"
	_ "time/tzdata" // the same zones on every machine

	"github.com/robfig/cron/v3"

	"dbbench.dev/operator/api/v1alpha1"
)

// checkStatements sees that a ConfigMap with statements is one that must be there.
func checkStatements(sql *v1alpha1.SQL) error {
	if sql == nil || sql.ConfigMapKeyRef == nil {
		return nil
	}
	switch ref := sql.ConfigMapKeyRef; {
	case ref.Name == "":
		return invalid("spec.workload.sql.configMapKeyRef.name", "it is empty; name the ConfigMap")
	case ref.Optional != nil && *ref.Optional:
		return invalid("spec.workload.sql.configMapKeyRef.optional", "without its statements there is nothing to run; leave it out")
	}
	return nil
}

// checkPrepare sees that the workload has data that outlives a run.
func checkPrepare(spec *v1alpha1.DBBenchmarkSpec) error {
	if mode := PrepareMode(spec); spec.Workload.Slap != nil && mode != v1alpha1.PreparePerRun {
		return invalid("spec.prepare", "%s is not possible with slap, which loads its rows for each run; leave it out", mode)
	}
	return nil
}

// checkShares sees that every pod of a run has something to do.
func checkShares(replicas int32, p point) error {
	if rate := p.load.Rate; rate != nil && *rate < int64(replicas) {
		return invalid("spec.load.rate", "%d events per second cannot be shared by %d pods (at the point %s); raise it, or lower spec.runner.replicas", *rate, replicas, p.id)
	}
	return nil
}

// checkThresholds sees that the limits can be read as what their metric is, and that
// each threshold applies to a point.
func checkThresholds(thresholds []v1alpha1.Threshold, axes []axis) error {
	for i, t := range thresholds {
		at := fmt.Sprintf("spec.thresholds[%d]", i)
		low, err := readLimit(t.Metric, t.Min, at+".min")
		if err != nil {
			return err
		}
		high, err := readLimit(t.Metric, t.Max, at+".max")
		if err != nil {
			return err
		}
		if low != nil && high != nil && low.Cmp(high) > 0 {
			return invalid(at+".min", "%s is greater than max, %s", t.Min, t.Max)
		}
		if len(t.Where) == 0 {
			continue
		}
		if _, err := readFilter(t.Where, axes, at+".where"); err != nil {
			return err
		}
	}
	return nil
}

// readLimit reads a limit: of latency and elapsed a duration, in seconds, else a
// number. An empty one is nil.
func readLimit(metric v1alpha1.Metric, text, at string) (*big.Rat, error) {
	if text == "" {
		return nil, nil
	}
	if metric == "elapsed" || strings.HasPrefix(string(metric), "latency.") {
		d, err := time.ParseDuration(text)
		if err != nil {
			return nil, invalid(at, "%q is not a duration, as %s needs; write one with its unit, such as 50ms", text, metric)
		}
		return big.NewRat(int64(d), int64(time.Second)), nil
	}
	number, ok := new(big.Rat).SetString(text)
	if !ok {
		return nil, invalid(at, "%q is not a number, as %s needs; write one without a unit, such as 1000", text, metric)
	}
	if metric == "errors" && !number.IsInt() {
		return nil, invalid(at, "%q is not a whole number, as errors needs", text)
	}
	if metric == "errorRate" && number.Cmp(big.NewRat(1, 1)) > 0 {
		return nil, invalid(at, "%q is more than 1; errorRate is errors per attempt, such as 0.01", text)
	}
	return number, nil
}

// cronFields are those of the crontab format, and names such as @daily. An interval
// (@every) has no beginning that would outlive the controller.
var cronFields = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

func checkSchedule(s *v1alpha1.Schedule) error {
	if s == nil {
		return nil
	}
	switch {
	case strings.HasPrefix(s.Cron, "TZ=") || strings.HasPrefix(s.Cron, "CRON_TZ="):
		return invalid("spec.schedule.cron", "write the time zone in timeZone")
	case strings.HasPrefix(s.Cron, "@every"):
		return invalid("spec.schedule.cron", "@every has no fixed times; write five fields, such as */30 * * * *")
	}
	times, err := cronFields.Parse(s.Cron)
	if err != nil {
		return invalid("spec.schedule.cron", "%v; write five fields, such as 0 3 * * *", err)
	}
	if times.Next(time.Unix(0, 0)).IsZero() {
		return invalid("spec.schedule.cron", "%q never comes, as 30 February; correct day and month", s.Cron)
	}
	if _, err := time.LoadLocation(s.TimeZone); err != nil || s.TimeZone == "Local" {
		return invalid("spec.schedule.timeZone", "%q is not a time zone; write an IANA name, such as Europe/Berlin", s.TimeZone)
	}
	return nil
}
