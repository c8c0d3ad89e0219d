package mysql

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"

	"dbbench.dev/operator/runner/contract"
	"dbbench.dev/operator/runner/workload"
)

// peerInMemory is a server in memory that knows one prepared statement, whose answer is one row.
// It allocates nothing per statement, so that what is counted is the client's.
type peerInMemory struct {
	conn   net.Conn
	in     [1024]byte
	answer []byte
}

func peerPacket(sequence byte, body ...byte) []byte {
	return append([]byte{byte(len(body)), 0, 0, sequence}, body...)
}

var (
	okPacket = []byte{0, 0, 0, 2, 0, 0, 0}
	eof      = []byte{0xfe, 0, 0, 2, 0}
)

// peerColumn describes a column or parameter of the type.
func peerColumn(kind byte) []byte {
	b := []byte{3, 'd', 'e', 'f', 0, 0, 0, 1, 'c', 0, 0x0c, 45, 0, 120, 0, 0, 0}
	return append(b, kind, 0, 0, 0, 0, 0)
}

func greeting() []byte {
	b := append([]byte{10}, "8.0.0-peer\x00"...)
	b = append(b, 1, 0, 0, 0)
	b = append(b, "12345678\x00"...)
	// PROTOCOL_41, SECURE_CONNECTION, CONNECT_WITH_DB, TRANSACTIONS; PLUGIN_AUTH above.
	b = append(b, 0x08, 0xa2, 45, 2, 0, 0x08, 0, 21)
	b = append(b, make([]byte, 10)...)
	b = append(b, "123456789012\x00"...)
	return append(b, "mysql_native_password\x00"...)
}

func (p *peerInMemory) serve() {
	defer p.conn.Close()
	row := append([]byte{0, 0, 119}, bytes.Repeat([]byte{'x'}, 119)...)
	p.answer = bytes.Join([][]byte{peerPacket(1, 1), peerPacket(2, peerColumn(253)...), peerPacket(3, eof...), peerPacket(4, row...), peerPacket(5, eof...)}, nil)
	prepared := bytes.Join([][]byte{peerPacket(1, 0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0), peerPacket(2, peerColumn(8)...), peerPacket(3, eof...),
		peerPacket(4, peerColumn(253)...), peerPacket(5, eof...)}, nil)
	if _, err := p.conn.Write(peerPacket(0, greeting()...)); err != nil {
		return
	}
	answers := map[byte][]byte{0x16: prepared, 0x17: p.answer}
	for first := true; ; first = false {
		command, err := p.read()
		answer, ok := answers[command]
		switch {
		case err != nil || !first && command == 1: // COM_QUIT
			return
		case first:
			answer = peerPacket(2, okPacket...)
		case !ok:
			answer = peerPacket(1, okPacket...)
		}
		if _, err := p.conn.Write(answer); err != nil {
			return
		}
	}
}

// read takes a packet and returns its first byte.
func (p *peerInMemory) read() (byte, error) {
	if _, err := io.ReadFull(p.conn, p.in[:4]); err != nil {
		return 0, err
	}
	p.in[3] = 0
	n := binary.LittleEndian.Uint32(p.in[:4])
	_, err := io.ReadFull(p.conn, p.in[4:4+n])
	return p.in[4], err
}

// roundTrip opens a session with a peer and returns what executes its statement.
func roundTrip(t testing.TB, how Transport) func(row workload.RowFunc) error {
	t.Helper()
	dir, err := os.MkdirTemp("", "peer-")
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close(); _ = os.RemoveAll(dir) })
	go func() {
		if conn, err := listener.Accept(); err == nil {
			(&peerInMemory{conn: conn}).serve()
		}
	}()
	c, err := NewConnector(contract.Target{Socket: filepath.Join(dir, "s"), UsernameFile: os.DevNull, PasswordFile: os.DevNull,
		TLS: contract.TLS{Mode: contract.TLSDisabled}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.Open(context.Background(), SessionOptions{Transport: how})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	h, err := s.Prepare("SELECT c FROM sbtest1 WHERE id = ?")
	if err != nil {
		t.Fatal(err)
	}
	args := []workload.Arg{workload.Int(1)}
	return func(row workload.RowFunc) error { return s.QueryPrepared(h, args, row) }
}

// allocationsPerQuery is what the driver allocates for a prepared query: its rows, the
// names of none, and the interfaces around them. None is ours.
const allocationsPerQuery = 5

func TestAllocationsOfARoundTrip(t *testing.T) {
	for _, how := range []Transport{{}, {Blocking: true}} {
		do := roundTrip(t, how)
		length := 0
		row := func(row workload.Row) error { length += len(row[0].([]byte)); return nil }
		if err := do(row); err != nil || length != 119 {
			t.Fatalf("a row of %d bytes, %v", length, err)
		}
		if n := testing.AllocsPerRun(1000, func() {
			if err := do(nil); err != nil {
				t.Fatal(err)
			}
		}); n > allocationsPerQuery {
			t.Errorf("%+v: %v allocations per query, want at most %d", how, n, allocationsPerQuery)
		}
	}
}

func BenchmarkRoundTrip(b *testing.B) {
	for name, how := range map[string]Transport{"poller": {}, "blocking": {Blocking: true}} {
		b.Run(name, func(b *testing.B) {
			do := roundTrip(b, how)
			b.ReportAllocs()
			for b.Loop() {
				if err := do(nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
