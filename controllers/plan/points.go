package plan

import (
	"fmt"
	"slices"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/results"
)

// checkContent is the finding of a workload that is a digest of its tables' content.
const checkContent = "contentSHA256"

// compareRuns adds to points what only a look at all their runs, on all targets, tells.
func compareRuns(points []v1alpha1.PointResult, runs []results.Envelope) {
	content, starts := map[string]*contents{}, map[[2]string]int64{}
	for _, r := range runs {
		if r.Failure != nil {
			continue
		}
		at := [2]string{r.Point, r.Target}
		starts[at] = max(starts[at], results.StartSkew(r.Records))
		for _, record := range r.Records {
			if digest := record.Result.Checks[checkContent]; digest != "" {
				if content[r.Point] == nil {
					content[r.Point] = &contents{}
				}
				content[r.Point].add(r.Target, digest)
			}
		}
	}
	for i := range points {
		p := &points[i]
		const nanosPerMicro = 1000
		p.StartSkewMicros = starts[[2]string{p.ID, p.Target}] / nanosPerMicro
		if c := content[p.ID]; c != nil && len(c.targets) > 1 {
			p.ContentIdentical = new(len(c.digests) == 1)
			if len(c.digests) > 1 {
				p.Warnings = append(p.Warnings, fmt.Sprintf("the tables do not hold the same after the runs of this point: %d different contents on %d targets", len(c.digests), len(c.targets)))
			}
		}
	}
}

// contents are the different contents that the runs of a point have left, and where.
type contents struct{ targets, digests []string }

func (c *contents) add(target, digest string) {
	if !slices.Contains(c.targets, target) {
		c.targets = append(c.targets, target)
	}
	if !slices.Contains(c.digests, digest) {
		c.digests = append(c.digests, digest)
	}
}
