package results

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"dbbench.dev/operator/runner/contract"
)

// The widest histogram that is read. One that claims more is no runner's, and would
// cost memory in proportion to what it claims.
const (
	maxValue  = 4 * time.Hour
	maxDigits = 3
)

// decodeHistograms are those of all operations of a run: all of them or, with an error,
// none.
func decodeHistograms(run Envelope) ([]*hdrhistogram.Histogram, error) {
	var all []*hdrhistogram.Histogram
	for _, r := range run.Records {
		for _, op := range r.Operations {
			if op.Count == 0 {
				continue
			}
			h, err := decodeHistogram(op)
			if err != nil {
				return nil, err
			}
			all = append(all, h)
		}
	}
	return all, nil
}

// merge adds histograms up. Of one geometry, as those of the runners are, the sum is
// exactly the histogram of all their values. Of none it is nil. The result is not to be
// written to.
func merge(parts []*hdrhistogram.Histogram) *hdrhistogram.Histogram {
	switch len(parts) {
	case 0:
		return nil
	case 1:
		return parts[0]
	}
	lowest, highest, digits := geometry(parts[0])
	for _, h := range parts[1:] {
		if l, high, d := geometry(h); l != lowest || high != highest || d != digits {
			lowest, highest, digits = 1, maxValue.Nanoseconds(), maxDigits
			break
		}
	}
	sum := hdrhistogram.New(lowest, highest, digits)
	for _, h := range parts {
		sum.Merge(h) // its range is within sum's, so nothing is dropped
	}
	return sum
}

func geometry(h *hdrhistogram.Histogram) (lowest, highest int64, digits int) {
	return h.LowestTrackableValue(), h.HighestTrackableValue(), int(h.SignificantFigures())
}

// binsPerDecade is the resolution of what is drawn.
const binsPerDecade = 10

// bins counts the values of a histogram in bins of equal width on a logarithmic axis,
// without the empty ones at both ends.
func bins(h *hdrhistogram.Histogram) []Bin {
	if h == nil {
		return nil
	}
	var all []Bin
	exponent := math.Inf(-1) // of the latest bin
	for _, bar := range h.Distribution() {
		if bar.Count == 0 {
			continue
		}
		e := math.Ceil(binsPerDecade * math.Log10(float64(max(bar.To, 1))))
		if len(all) == 0 {
			exponent = e - 1
		}
		for ; exponent < e; exponent++ {
			all = append(all, Bin{UpToNanos: int64(math.Round(math.Pow(10, (exponent+1)/binsPerDecade)))})
		}
		all[len(all)-1].Count += bar.Count
	}
	return all
}

// decodeHistogram reads the histogram of an operation, which is untrusted input.
func decodeHistogram(op contract.Operation) (*hdrhistogram.Histogram, error) {
	if err := checkGeometry(op.Histogram); err != nil {
		return nil, fmt.Errorf("histogram of %s: %w", op.Name, err)
	}
	h, err := hdrhistogram.Decode([]byte(op.Histogram))
	if err != nil {
		return nil, fmt.Errorf("histogram of %s: %w", op.Name, err)
	}
	if h.TotalCount() != op.Count {
		return nil, fmt.Errorf("histogram of %s holds %d values, but %d are counted", op.Name, h.TotalCount(), op.Count)
	}
	return h, nil
}

// checkGeometry reads the header of a histogram in the V2 compressed encoding: eight
// bytes, and in zlib four numbers of 32 bits and two of 64.
func checkGeometry(text string) error {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return err
	}
	if len(raw) < 8 {
		return errors.New("it is too short")
	}
	z, err := zlib.NewReader(bytes.NewReader(raw[8:]))
	if err != nil {
		return err
	}
	var header struct {
		Cookie, Length, Offset, Digits int32
		Lowest, Highest                int64
	}
	if err := binary.Read(z, binary.BigEndian, &header); err != nil {
		return errors.Join(err, z.Close())
	}
	if header.Digits > maxDigits || header.Highest > maxValue.Nanoseconds() {
		return fmt.Errorf("it spans %d with %d digits, at most %d with %d are read", header.Highest, header.Digits, maxValue.Nanoseconds(), maxDigits)
	}
	return z.Close()
}

// Check holds a record to what the numbers that are made of it need: a record that
// passes can be aggregated.
func Check(r *contract.Record) error {
	for _, op := range r.Operations {
		if op.Count == 0 {
			continue
		}
		if _, err := decodeHistogram(op); err != nil {
			return err
		}
		if mean := op.SumNanos / op.Count; mean < op.MinNanos || mean > op.MaxNanos {
			return fmt.Errorf("the mean of %s, %d, is not between its minimum and its maximum", op.Name, mean)
		}
	}
	succeeded := r.Result.Outcome == contract.OutcomeSucceeded
	switch {
	case succeeded && r.Result.Events == 0:
		return errors.New("it tells of success, but of no event")
	case succeeded && r.Result.ElapsedNanos <= 0:
		return errors.New("it tells of success, but the time is not positive")
	}
	return nil
}
