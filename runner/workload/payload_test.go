package workload

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"dbbench.dev/operator/runner/contract"
)

func payloadOptions(operation string) contract.Payload {
	return contract.Payload{
		Operation: operation, Size: 4, Lengths: contract.LengthsFixed, Rows: 5, Engine: "InnoDB", KeyType: contract.KeyBigInt,
		Column: contract.ColumnAuto, Autocommit: true, CommitEvery: 100, Alphabet: contract.AlphabetDigits, Checksum: true,
	}
}

// matchGolden holds a text against a file.
func matchGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}

// TestPayloadTexts holds all that payload says against golden files.
func TestPayloadTexts(t *testing.T) {
	for name, tt := range map[string]struct {
		operation string
		change    func(*contract.Payload)
	}{
		"insert":         {contract.PayloadInsert, func(p *contract.Payload) { p.Size, p.Column, p.KeyType = 20, contract.ColumnVarChar, contract.KeyInt }},
		"insert-commit":  {contract.PayloadInsert, func(p *contract.Payload) { p.Autocommit, p.CommitEvery = false, 2 }},
		"update":         {contract.PayloadUpdate, func(p *contract.Payload) { p.ToSize = sizeOf(8) }},
		"update-all":     {contract.PayloadUpdateAll, func(p *contract.Payload) { p.Autocommit = false }},
		"replace-tables": {contract.PayloadReplace, func(p *contract.Payload) { p.TablePerClient, p.Engine = true, "MyISAM" }},
		"binary":         {contract.PayloadUpdate, func(p *contract.Payload) { p.Alphabet, p.Rows = contract.AlphabetBinary, 2 }},
	} {
		t.Run(name, func(t *testing.T) {
			opts := payloadOptions(tt.operation)
			tt.change(&opts)
			matchGolden(t, "payload-"+name, strings.Join(payloadPass(t, opts, 2), "\n")+"\n")
		})
	}
}

// bytesTape shows arguments of bytes as if they were texts.
type bytesTape struct{ *tape }

func (s bytesTape) ExecPrepared(h Handle, args []Arg) (Result, error) {
	shown := slices.Clone(args)
	for i, a := range shown {
		if a.kind == argBytes {
			shown[i] = Text(string(a.bytes))
		}
	}
	return s.tape.ExecPrepared(h, shown)
}

func sizeOf(n contract.Size) *contract.Size { return &n }

// payloadPass is what is said in a preparation, a pass of n clients one after the other,
// and the check after it.
func payloadPass(t *testing.T, opts contract.Payload, n int) []string {
	t.Helper()
	p, s := newPayload(opts), &tape{}
	p.Load(contract.Load{Clients: int32(n)})
	env := &Env{Session: s, Tables: s, Mode: contract.PreparePerRun, Clients: n}
	if err := p.Prepare(env); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		s.said = append(s.said, fmt.Sprint("-- client ", i))
		s.prepared = nil
		c := p.NewClient(i, n)
		if err := c.Open([]Session{bytesTape{s}}); err != nil {
			t.Fatal(err)
		}
		for {
			operation, err := c.Event()
			if errors.Is(err, ErrDone) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			s.said = append(s.said, "-- "+p.Operations()[operation])
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s.said = append(s.said, "-- verify")
	_, err := p.Verify(env)
	var f *contract.Failure
	if !errors.As(err, &f) || f.Class != contract.ClassVerifyFailed {
		t.Errorf("a table without rows: %v", err)
	}
	for i, text := range s.said {
		s.said[i] = fmt.Sprintf("%q", text)
	}
	return s.said
}

func TestPayloadValues(t *testing.T) {
	for _, alphabet := range []string{contract.AlphabetBinary, contract.AlphabetDigits, contract.AlphabetPrintable} {
		v := newPayloadValues(1, alphabet, 64)
		one := payloadLengths{1, 1}
		seen := [256]int{}
		for row := range int64(20000) {
			value := v.value(one, row, 0)
			seen[value[0]]++
			for version := range uint64(3) {
				if a, b := v.value(one, row, version), v.value(one, row, version+1); bytes.Equal(a, b) {
					t.Fatalf("%s: row %d is %q in versions %d and %d", alphabet, row, a, version, version+1)
				}
			}
		}
		letters := payloadAlphabet(alphabet)
		even := 20000 / len(letters)
		for c, n := range seen {
			switch inside := bytes.IndexByte(letters, byte(c)) >= 0; {
			case !inside && n > 0:
				t.Errorf("%s: %q is not of the alphabet", alphabet, rune(c))
			case inside && (n < even/2 || n > even*2):
				t.Errorf("%s: %q comes %d times of 20000, even would be %d", alphabet, rune(c), n, even)
			}
		}
	}
	if n := len(payloadAlphabet(contract.AlphabetPrintable)); n != 92 {
		t.Errorf("%d printable letters, want 92", n)
	}
}

// TestPayloadPool: versions differ also where one begins at the last place and the next
// at the first.
func TestPayloadPool(t *testing.T) {
	for seed := range int64(5) {
		v := newPayloadValues(seed, contract.AlphabetDigits, 3)
		for i := range payloadStarts {
			if v.pool[i] == v.pool[(i+1)%payloadStarts] {
				t.Fatalf("seed %d: places %d and the next hold %q", seed, i, v.pool[i])
			}
		}
		for i := payloadStarts - 1; i+1 < len(v.pool); i++ {
			if v.pool[i] == v.pool[i+1] {
				t.Fatalf("seed %d: places %d and the next hold %q", seed, i, v.pool[i])
			}
		}
	}
}

func TestPayloadLengths(t *testing.T) {
	opts := payloadOptions(contract.PayloadInsert)
	opts.Size, opts.Lengths = 200, contract.LengthsUniform
	p := newPayload(opts)
	var seen [201]int
	for row := range int64(20000) {
		seen[len(p.values.value(p.written, row, 0))]++
	}
	if seen[0] != 0 {
		t.Errorf("%d empty values", seen[0])
	}
	for n, count := range seen[1:] {
		if count < 50 || count > 170 {
			t.Errorf("%d values of length %d, even would be 100", count, n+1)
		}
	}
}

// TestPayloadRows: every row belongs to one client, and each of its pass is written
// once.
func TestPayloadRows(t *testing.T) {
	for _, operation := range []string{contract.PayloadInsert, contract.PayloadUpdate} {
		for _, rows := range []int64{1, 2, 7, 100, 1009} {
			for _, n := range []int{1, 2, 3, 10, 64} {
				opts := payloadOptions(operation)
				opts.Rows = rows
				p := newPayload(opts)
				p.Load(contract.Load{Clients: int32(n)})
				var got []int64
				for i := range n {
					c := p.NewClient(i, n).(*payloadClient)
					for ; c.done < c.limit; c.done++ {
						got = append(got, c.stripes.row(c.index, c.place()))
					}
				}
				slices.Sort(got)
				for i, row := range got {
					if row != int64(i) {
						t.Fatalf("%s, %d rows, %d clients: got %v", operation, rows, n, got)
					}
				}
				if int64(len(got)) != rows {
					t.Errorf("%s, %d rows, %d clients: %d were written", operation, rows, n, len(got))
				}
			}
		}
	}
}

// TestPayloadStopRules: with a stop rule updates go on with another value, and an
// Insert ends with its rows.
func TestPayloadStopRules(t *testing.T) {
	for _, tt := range []struct {
		operation string
		perClient bool
		load      contract.Load
		want      []int64 // limits of three clients of five rows
	}{
		{contract.PayloadInsert, false, contract.Load{}, []int64{2, 2, 1}},
		{contract.PayloadInsert, false, contract.Load{Events: 100}, []int64{2, 2, 1}},
		{contract.PayloadUpdate, false, contract.Load{}, []int64{2, 2, 1}},
		{contract.PayloadUpdate, false, contract.Load{Duration: 1}, []int64{-1, -1, -1}},
		{contract.PayloadUpdateAll, false, contract.Load{}, []int64{1, 0, 0}},
		{contract.PayloadUpdateAll, true, contract.Load{}, []int64{1, 1, 1}},
		{contract.PayloadUpdateAll, false, contract.Load{EventsPerClient: 3}, []int64{-1, -1, -1}},
	} {
		opts := payloadOptions(tt.operation)
		opts.TablePerClient = tt.perClient
		p := newPayload(opts)
		tt.load.Clients = 3
		if got := p.Load(tt.load); !reflect.DeepEqual(got, tt.load) {
			t.Errorf("%+v: load became %+v", tt, got)
		}
		for i, want := range tt.want {
			if got := p.NewClient(i, 3).(*payloadClient).limit; got != want {
				t.Errorf("%+v: limit of client %d is %d", tt, i, got)
			}
		}
	}
	opts := payloadOptions(contract.PayloadUpdate)
	p := newPayload(opts)
	p.Load(contract.Load{Clients: 1, Events: 100})
	c := p.NewClient(0, 1).(*payloadClient)
	c.args = make([]Arg, 0, 2)
	first := c.arguments()[0].bytes
	c.done = c.count
	if again := c.arguments()[0].bytes; bytes.Equal(first, again) {
		t.Errorf("the second pass writes %q again", first)
	}
}

// TestPayloadRollback: what a deadlock has rolled back is done again.
func TestPayloadRollback(t *testing.T) {
	opts := payloadOptions(contract.PayloadInsert)
	opts.Autocommit, opts.CommitEvery = false, 3
	p := newPayload(opts)
	p.Load(contract.Load{Clients: 1})
	executions := 0
	s := &tape{answer: func(text string) error {
		if strings.HasPrefix(text, "INSERT") {
			if executions++; executions == 6 { // PREPARE is the first
				return &mysql.MySQLError{Number: erLockDeadlock}
			}
		}
		return nil
	}}
	c := p.NewClient(0, 1)
	if err := c.Open([]Session{s}); err != nil {
		t.Fatal(err)
	}
	retries := 0
	for {
		_, err := c.Event()
		if errors.Is(err, ErrDone) {
			break
		}
		if err != nil {
			if p.OnError(err) != Retry {
				t.Fatal(err)
			}
			retries++
		}
	}
	var keys []string
	for _, text := range s.said {
		switch {
		case strings.HasPrefix(text, "-- execute: INSERT"):
			_, values, _ := strings.Cut(text, "VALUES (")
			keys = append(keys, values[:1])
		case text == "COMMIT" || text == "ROLLBACK":
			keys = append(keys, text)
		}
	}
	if got := strings.Join(keys, " "); got != "0 1 2 COMMIT 3 4 ROLLBACK 3 4 COMMIT" || retries != 1 {
		t.Errorf("said %s with %d retries", got, retries)
	}
	if p.OnError(&mysql.MySQLError{Number: 1062}) != Fail || p.OnError(errors.New("lost")) != Fail {
		t.Error("another error does not end the run")
	}
}

func TestPayloadRequirements(t *testing.T) {
	opts := payloadOptions(contract.PayloadUpdate)
	opts.Size, opts.ToSize, opts.Alphabet, opts.TablePerClient = 1<<20, sizeOf(1), contract.AlphabetBinary, true
	p := newPayload(opts)
	p.Load(contract.Load{Clients: 2})
	r := p.Requirements()
	if !slices.Equal(r.Tables, []string{"bench1", "bench2"}) || r.EngineField != "spec.workload.payload.engine" || r.Statements != 1 {
		t.Errorf("%+v", r)
	}
	if r.LargestPacket < 2<<20 {
		t.Errorf("the largest packet has %d bytes, the load sends 1 MiB in hexadecimal", r.LargestPacket)
	}
	opts.Operation, opts.ToSize = contract.PayloadInsert, nil
	if got := newPayload(opts).Requirements().LargestPacket; got != 1<<20 {
		t.Errorf("the largest packet of an Insert of 1 MiB has %d bytes", got)
	}
}

func TestPayloadDatasetIsUsedUp(t *testing.T) {
	p, s := newPayload(payloadOptions(contract.PayloadUpdate)), &tape{}
	if err := p.Prepare(&Env{Session: s, Tables: s, Mode: contract.PreparePerDataset, Clients: 1}); err != nil {
		t.Fatal(err)
	}
	if last := s.said[len(s.said)-1]; last != "DELETE FROM _dbbench_dataset WHERE step = 0" {
		t.Errorf("last said: %s", last)
	}
}

func TestPayloadEventAllocatesNothing(t *testing.T) {
	for name, change := range map[string]func(*contract.Payload){
		"insert": func(o *contract.Payload) { o.Operation, o.Rows = contract.PayloadInsert, 1<<40 },
		"update": func(o *contract.Payload) { o.Lengths = contract.LengthsUniform },
		"replace": func(o *contract.Payload) {
			o.Operation = contract.PayloadReplace
			o.Autocommit, o.CommitEvery = false, 3
		},
		"all": func(o *contract.Payload) { o.Operation = contract.PayloadUpdateAll },
	} {
		opts := payloadOptions(contract.PayloadUpdate)
		change(&opts)
		p, s := newPayload(opts), &tape{}
		p.Load(contract.Load{Clients: 2, Duration: 1})
		c := p.NewClient(0, 2)
		if err := c.Open([]Session{s}); err != nil {
			t.Fatal(err)
		}
		s.mute = true
		if n := testing.AllocsPerRun(1000, func() {
			if _, err := c.Event(); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations per event", name, n)
		}
	}
}

func BenchmarkPayloadValue(b *testing.B) {
	v := newPayloadValues(1, contract.AlphabetBinary, 1<<20)
	lengths := payloadLengths{1, 1 << 20}
	for i := range b.N {
		_ = v.value(lengths, int64(i), 1)
	}
}
