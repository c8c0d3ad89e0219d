package mysql

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dbbench.dev/operator/runner/contract"
)

const secret = "s3cret-of-the-canary"

// peer speaks MySQL's client/server protocol for a server that a test makes up.
type peer struct {
	net.Conn
	sequence byte
}

func (p *peer) send(payload []byte) error {
	header := binary.LittleEndian.AppendUint32(nil, uint32(len(payload)))
	header[3] = p.sequence
	p.sequence++
	_, err := p.Write(append(header, payload...))
	return err
}

// receive reads a packet and drops it.
func (p *peer) receive() error {
	var header [4]byte
	if _, err := io.ReadFull(p, header[:]); err != nil {
		return err
	}
	p.sequence = header[3] + 1
	_, err := io.CopyN(io.Discard, p, int64(header[0])|int64(header[1])<<8|int64(header[2])<<16)
	return err
}

// fail sends an error packet.
func (p *peer) fail(number uint16, text string) error {
	return p.send(append(append(binary.LittleEndian.AppendUint16([]byte{0xff}, number), "#42000"...), text...))
}

var ok = []byte{0, 0, 0, 2, 0, 0, 0}

// greet offers mysql_native_password, and takes whatever comes.
func (p *peer) greet() error {
	const capabilities = 0x00000200 | 0x00008000 | 0x00080000 | 0x00000008 // protocol 4.1, secure connection, plugins, database
	g := append([]byte{10}, "8.4.0-made-up\x00"...)
	g = append(g, 1, 0, 0, 0)
	g = append(g, "12345678\x00"...)
	g = binary.LittleEndian.AppendUint16(g, capabilities&0xffff)
	g = append(g, 45, 2, 0)
	g = binary.LittleEndian.AppendUint16(g, capabilities>>16)
	g = append(g, 21)
	g = append(g, make([]byte, 10)...)
	g = append(g, "123456789012\x00mysql_native_password\x00"...)
	if err := p.send(g); err != nil {
		return err
	}
	err := p.receive()
	return err
}

// serve has play answer each connection, after the greeting.
func serve(t *testing.T, play func(*peer) error) contract.Target {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				p := &peer{Conn: conn}
				if p.greet() == nil {
					_ = play(p)
				}
			}()
		}
	}()
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	return contract.Target{Host: "127.0.0.1", Port: int32(listener.Addr().(*net.TCPAddr).Port),
		UsernameFile: os.DevNull, PasswordFile: password, TLS: contract.TLS{Mode: contract.TLSDisabled}}
}

// answering accepts the user and answers every command in the same way.
func answering(answer func(*peer) error) func(*peer) error {
	return func(p *peer) error {
		if err := p.send(ok); err != nil {
			return err
		}
		for {
			if err := p.receive(); err != nil {
				return err
			}
			if err := answer(p); err != nil {
				return err
			}
		}
	}
}

// TestEchoedPassword: what the server quotes of the password never comes out.
func TestEchoedPassword(t *testing.T) {
	const text = "you said '" + secret + "', twice: " + secret
	check := func(what string, err error) {
		t.Helper()
		f := FailureOf(err, contract.ClassRunnerError)
		if err == nil || f.MySQLError == 0 || strings.Contains(err.Error()+f.Error(), secret) || !strings.Contains(f.Message, "you said '[hidden]', twice: [hidden]") {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := open(t, serve(t, func(p *peer) error { return p.fail(1045, text) }), SessionOptions{})
	check("connect", err)

	s := mustOpen(t, serve(t, answering(func(p *peer) error { return p.fail(1064, text) })), SessionOptions{})
	_, err = s.Exec("x")
	check("exec", err)
	check("query without rows", s.Query("x", nil))
	_, err = s.table("x")
	check("query", err)
	_, err = s.Prepare("x")
	check("prepare", err)
}

// TestHugeErrorText: 16 MiB of text become a line that fits into a status.
func TestHugeErrorText(t *testing.T) {
	s := mustOpen(t, serve(t, answering(func(p *peer) error { return p.fail(1064, strings.Repeat("ä", 8<<20-100)) })), SessionOptions{})
	_, err := s.Exec("x")
	if Number(err) != 1064 || len(err.Error()) > maxMessage+100 || !strings.HasSuffix(err.Error(), "bytes)") {
		t.Errorf("%d bytes of error", len(err.Error()))
	}
}

// rows sends a result of one column with rows until the connection breaks.
func rows(p *peer, row []byte, pause time.Duration) error {
	column := []byte("\x03def\x00\x00\x00\x01a\x00\x0c\x2d\x00\xff\x00\x00\x00\xfd\x00\x00\x00\x00\x00")
	for _, packet := range [][]byte{{1}, column, {0xfe, 0, 0, 2, 0}} {
		if err := p.send(packet); err != nil {
			return err
		}
	}
	for {
		if err := p.send(row); err != nil {
			return err
		}
		time.Sleep(pause)
	}
}

// TestEndlessResult: a result that is kept has a limit, and one that is not kept ends
// with the run's time.
func TestEndlessResult(t *testing.T) {
	row := append([]byte{0xfd, 0xff, 0xff, 0x00}, make([]byte, 0xffff)...)
	to := serve(t, answering(func(p *peer) error { return rows(p, row, 0) }))
	if _, err := mustOpen(t, to, SessionOptions{}).table("SHOW VARIABLES"); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("a result without end is kept: %v", err)
	}
	endsWithContext(t, to)
}

// TestSlowServer: one that trickles is given up with the run's time.
func TestSlowServer(t *testing.T) {
	endsWithContext(t, serve(t, answering(func(p *peer) error { return rows(p, []byte{1, 'x'}, 10*time.Millisecond) })))
}

func endsWithContext(t *testing.T, to contract.Target) {
	t.Helper()
	c, err := NewConnector(to)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	s, err := c.Open(ctx, SessionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	failed := make(chan error, 1)
	go func() { failed <- s.Query("SELECT 1", nil) }()
	select {
	case err := <-failed:
		if !IsConnectionLost(err) {
			t.Errorf("got %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the call goes on")
	}
}

// TestNonsense: packets that are none are an error, and no more.
func TestNonsense(t *testing.T) {
	for name, packet := range map[string][]byte{
		"empty": {}, "half an error": {0xff}, "rows without columns": {0xfe}, "4 billion columns": {0xfe, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0},
		"a local file": append([]byte{0xfb}, "/etc/passwd"...), "noise": []byte(strings.Repeat("\xfc\x01", 100)),
	} {
		s := mustOpen(t, serve(t, answering(func(p *peer) error {
			return errors.Join(p.send(packet), io.EOF)
		})), SessionOptions{})
		if err := s.Query("SELECT 1", nil); err == nil {
			t.Errorf("%s is taken for an answer", name)
		} else {
			t.Logf("%s: %v", name, err)
		}
	}
}
