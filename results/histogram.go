package results

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
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

func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, maxValue.Nanoseconds(), maxDigits)
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
