// Package mysql is all that the runner knows of the server: how to connect, what its
// errors mean, what it must offer before a load starts, and what in it is ours. It
// uses go-sql-driver's connections directly; database/sql and its pool have no place
// in a measurement.
package mysql

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	driverpkg "github.com/go-sql-driver/mysql"

	"dbbench.dev/operator/runner/contract"
)

const (
	// connectTimeout bounds one attempt to connect, authentication included.
	connectTimeout = 10 * time.Second
	// A patient session makes so many attempts, with such pauses between them.
	connectTries = 10
	firstPause   = 50 * time.Millisecond
	maxPause     = time.Second
)

// maxPacket is the most that a server takes. What this one takes, preflight knows, and
// the driver need not ask.
const maxPacket = 1 << 30

// Connector opens connections to one target. It is safe for concurrent use.
type Connector struct {
	target contract.Target
	config *driverpkg.Config
	// plain is set once a server was found to offer TLS that does not work, where the
	// mode is Preferred.
	plain atomic.Bool
}

// NewConnector reads the credentials and certificates of the target. Its errors are
// *contract.Failure.
func NewConnector(target contract.Target) (*Connector, error) {
	user, err := readSecret(target.UsernameFile, "username")
	if err != nil {
		return nil, err
	}
	password, err := readSecret(target.PasswordFile, "password")
	if err != nil {
		return nil, err
	}
	tlsConfig, err := newTLSConfig(target)
	if err != nil {
		return nil, err
	}

	config := driverpkg.NewConfig()
	config.User, config.Passwd = user, password
	config.Net, config.Addr = "tcp", net.JoinHostPort(target.Host, strconv.Itoa(int(target.Port)))
	if target.Socket != "" {
		config.Net, config.Addr = "unix", target.Socket
	}
	config.TLS = tlsConfig
	config.AllowFallbackToPlaintext = target.TLS.Mode == contract.TLSPreferred
	// A password in clear text goes to a server that has proven who it is, to no other.
	config.AllowCleartextPasswords = target.TLS.Mode == contract.TLSVerifyCA || target.TLS.Mode == contract.TLSVerifyIdentity
	config.Params = sessionParams(target.SessionVariables)
	config.Logger = &driverpkg.NopLogger{} // errors are returned as well
	config.DialFunc = dial
	config.MaxAllowedPacket = maxPacket
	return &Connector{target: target, config: config}, nil
}

// readSecret reads a credential without the newline that editors leave at its end.
// Its errors never hold what was read.
func readSecret(path, what string) (string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", &contract.Failure{Class: contract.ClassAuthenticationFailed,
			Message: fmt.Sprintf("the %s cannot be read: %v", what, err),
			Hint:    "check the Secret that spec.targets[].credentialsSecretRef names, and its keys"}
	}
	return strings.TrimRight(string(b), "\r\n"), nil
}

var numeric = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?$`)

func sessionParams(variables map[string]string) map[string]string {
	params := make(map[string]string, len(variables))
	for name, value := range variables {
		if !numeric.MatchString(value) {
			value = quoteText(value)
		}
		params[name] = value
	}
	return params
}

// newTLSConfig translates the modes of MySQL's --ssl-mode. Disabled is nil.
func newTLSConfig(target contract.Target) (*tls.Config, error) {
	t := target.TLS
	if t.Mode == contract.TLSDisabled {
		return nil, nil
	}
	config := &tls.Config{InsecureSkipVerify: true} // up to Required nothing is verified
	if t.CertFile != "" {
		cert, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, tlsFailure("the client certificate cannot be read: %v", err)
		}
		config.Certificates = []tls.Certificate{cert}
	}
	if t.Mode != contract.TLSVerifyCA && t.Mode != contract.TLSVerifyIdentity {
		return config, nil
	}
	roots, err := readRoots(t.CAFile)
	if err != nil {
		return nil, err
	}
	config.RootCAs = roots
	if t.Mode == contract.TLSVerifyCA {
		config.VerifyConnection = func(s tls.ConnectionState) error { return verifyChain(s, roots) }
		return config, nil
	}
	config.InsecureSkipVerify = false
	config.ServerName = t.ServerName
	if config.ServerName == "" {
		config.ServerName = target.Host
	}
	return config, nil
}

func readRoots(path string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, tlsFailure("the certificate authority cannot be read: %v", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, tlsFailure("%s holds no certificate in PEM form", path)
	}
	return roots, nil
}

// verifyChain is the check of VerifyCA: the chain, not the name.
func verifyChain(s tls.ConnectionState, roots *x509.CertPool) error {
	options := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
	for _, cert := range s.PeerCertificates[1:] {
		options.Intermediates.AddCert(cert)
	}
	_, err := s.PeerCertificates[0].Verify(options)
	if err != nil {
		return &tls.CertificateVerificationError{UnverifiedCertificates: s.PeerCertificates, Err: err}
	}
	return nil
}

// dialError tells a server that was not reached from one that was.
type dialError struct{ err error }

func (e *dialError) Error() string { return e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

// tlsError is a handshake that failed. The standard library has no common type for
// its reasons.
type tlsError struct{ err error }

func (e *tlsError) Error() string { return e.err.Error() }
func (e *tlsError) Unwrap() error { return e.err }

// attempt follows one attempt to connect.
type attempt struct {
	own      bool // the socket is not for Go's poller
	conn     net.Conn
	verified bool // the server's certificate was accepted
}

type attemptKey struct{}

func dial(ctx context.Context, network, address string) (net.Conn, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, &dialError{err}
	}
	a, ok := ctx.Value(attemptKey{}).(*attempt)
	if !ok {
		return conn, nil
	}
	if a.own {
		if conn, err = ownSocket(conn); err != nil {
			return nil, &dialError{err}
		}
	}
	a.conn = conn
	return conn, nil
}

// openPatiently opens a connection, if that is asked for in several attempts. mysqlslap
// makes as many; the pauses grow up to maxPause.
func (c *Connector) openPatiently(ctx context.Context, options SessionOptions) (driver.Conn, net.Conn, error) {
	pause := firstPause
	for try := 1; ; try++ {
		conn, socket, err := c.open(ctx, options)
		if err == nil || !options.Patient || try == connectTries || !IsTransientConnect(err) {
			return conn, socket, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, nil, err
		}
		pause = min(2*pause, maxPause)
	}
}

// open opens a connection. The second result is its socket, which may be closed from
// anywhere to end a call that is under way.
func (c *Connector) open(ctx context.Context, options SessionOptions) (conn driver.Conn, socket net.Conn, err error) {
	defer c.wary(&err)
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()

	config := c.config.Clone()
	config.DBName = options.Database
	config.MultiStatements = options.MultiStatements
	if c.plain.Load() {
		config.TLS = nil
	}
	own := options.Blocking || options.Waiter != nil
	conn, socket, err = connectOnce(ctx, config, own)
	var te *tlsError
	if errors.As(err, &te) && c.target.TLS.Mode == contract.TLSPreferred {
		config.TLS = nil
		if conn, socket, err = connectOnce(ctx, config, own); err == nil {
			c.plain.Store(true)
		}
	}
	return conn, socket, err
}

func connectOnce(ctx context.Context, config *driverpkg.Config, own bool) (driver.Conn, net.Conn, error) {
	a := &attempt{own: own}
	if config.TLS != nil {
		config.TLS = watchHandshake(config.TLS, a)
	}
	connector, err := driverpkg.NewConnector(config)
	if err != nil {
		return nil, nil, err
	}
	conn, err := connector.Connect(context.WithValue(ctx, attemptKey{}, a))
	switch {
	case err == nil:
		return conn, a.conn, nil
	case ctx.Err() != nil && a.conn == nil:
		return nil, nil, &dialError{err}
	case ctx.Err() == nil && config.TLS != nil && a.conn != nil && !a.verified && !isDriverError(err):
		return nil, nil, &tlsError{err}
	}
	return nil, nil, err
}

// watchHandshake notes when the certificate was accepted. The driver hands on what
// crypto/tls says, which has no type of its own; that the handshake did not get so
// far tells its errors from those that come later.
func watchHandshake(config *tls.Config, a *attempt) *tls.Config {
	config = config.Clone()
	verify := config.VerifyConnection
	config.VerifyConnection = func(s tls.ConnectionState) error {
		if verify != nil {
			if err := verify(s); err != nil {
				return err
			}
		}
		a.verified = true
		return nil
	}
	return config
}

// isDriverError reports whether an error is one that the server or the driver made.
func isDriverError(err error) bool {
	var de *dialError
	var me *driverpkg.MySQLError
	if errors.As(err, &de) || errors.As(err, &me) {
		return true
	}
	for _, known := range []error{
		driver.ErrBadConn, driverpkg.ErrInvalidConn, driverpkg.ErrMalformPkt, driverpkg.ErrNoTLS,
		driverpkg.ErrCleartextPassword, driverpkg.ErrNativePassword, driverpkg.ErrOldPassword,
		driverpkg.ErrUnknownPlugin, driverpkg.ErrOldProtocol, driverpkg.ErrPktSync, driverpkg.ErrPktSyncMul,
		driverpkg.ErrPktTooLarge, driverpkg.ErrBusyBuffer,
	} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}
