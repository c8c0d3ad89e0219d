package mysql

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	driverpkg "github.com/go-sql-driver/mysql"

	"dbbench.dev/operator/runner/contract"
)

// meaning is what an error number says, whenever it comes.
type meaning struct {
	class contract.Class // "" leaves the class to where the error came from
	hint  string
}

const (
	hintCredentials = "check user and password in the Secret that spec.targets[].credentialsSecretRef names, from which hosts the user may connect, and whether the account or the server demands TLS (spec.targets[].tls.mode)"
	hintPrivileges  = "grant the user what the benchmark needs, such as GRANT ALL PRIVILEGES ON `<spec.targets[].database>`.*"
	hintReadOnly    = "point spec.targets[].host at the primary server, or make this one writable"
	hintConnections = "lower spec.load.clients, or raise the server's limit"
	hintOwn         = "this is likely to be a defect of the workload; please report it"
	hintPacket      = "raise max_allowed_packet of the server, or make the rows smaller"
	hintRestarted   = "look into the server's log: it was stopped, restarted or ran out of memory"
)

// meanings by error number of the server (MySQL's and MariaDB's error references).
var meanings = map[uint16]meaning{
	1044: {contract.ClassPreflightFailed, hintPrivileges}, // ER_DBACCESS_DENIED_ERROR
	1045: {contract.ClassAuthenticationFailed, hintCredentials},
	1130: {contract.ClassAuthenticationFailed, hintCredentials}, // ER_HOST_NOT_PRIVILEGED
	1251: {contract.ClassAuthenticationFailed, "give the user an authentication plugin of the server's default"},
	1524: {contract.ClassAuthenticationFailed, "give the user an authentication plugin that the server has loaded"},
	1698: {contract.ClassAuthenticationFailed, hintCredentials}, // ER_ACCESS_DENIED_NO_PASSWORD_ERROR
	1820: {contract.ClassAuthenticationFailed, "the user's password has expired: set a new one"},
	1862: {contract.ClassAuthenticationFailed, "the user's password has expired: set a new one"},
	2059: {contract.ClassAuthenticationFailed, "give the user an authentication plugin of the server's default"},
	3118: {contract.ClassAuthenticationFailed, "the account is locked: unlock it with ALTER USER … ACCOUNT UNLOCK"},
	4151: {contract.ClassAuthenticationFailed, "the account is locked: unlock it with ALTER USER … ACCOUNT UNLOCK"},
	3159: {contract.ClassTLSFailed, "the server refuses connections without TLS: set spec.targets[].tls.mode to Required or stricter"},

	1040: {contract.ClassPreflightFailed, hintConnections}, // ER_CON_COUNT_ERROR
	1203: {contract.ClassPreflightFailed, hintConnections}, // ER_TOO_MANY_USER_CONNECTIONS
	1226: {contract.ClassPreflightFailed, "the account has reached one of its own limits: raise it with ALTER USER … WITH"},
	1129: {contract.ClassTargetUnreachable, "the server blocks this host after failed connections: FLUSH HOSTS unblocks it"},
	1142: {contract.ClassPreflightFailed, hintPrivileges}, // ER_TABLEACCESS_DENIED_ERROR
	1143: {contract.ClassPreflightFailed, hintPrivileges},
	1227: {contract.ClassPreflightFailed, hintPrivileges}, // ER_SPECIFIC_ACCESS_DENIED_ERROR
	1286: {contract.ClassPreflightFailed, "choose a storage engine that SHOW ENGINES lists"},
	3161: {contract.ClassPreflightFailed, "choose another storage engine, or take this one out of the server's disabled_storage_engines"},
	1193: {contract.ClassPreflightFailed, "the server does not know a variable of spec.targets[].sessionVariables"},
	1229: {contract.ClassPreflightFailed, "a variable of spec.targets[].sessionVariables is global: set it on the server"},
	1231: {contract.ClassPreflightFailed, "correct the value in spec.targets[].sessionVariables"},
	1232: {contract.ClassPreflightFailed, "correct the value in spec.targets[].sessionVariables"},
	1238: {contract.ClassPreflightFailed, "a variable of spec.targets[].sessionVariables cannot be set: leave it out"},
	1290: {contract.ClassPreflightFailed, hintReadOnly}, // ER_OPTION_PREVENTS_STATEMENT
	1792: {contract.ClassPreflightFailed, hintReadOnly},
	1836: {contract.ClassPreflightFailed, hintReadOnly},
	3750: {contract.ClassPreflightFailed, "the server demands primary keys: choose options that give the table one, such as workload.slap.guidPrimary"},
	4030: {contract.ClassPreflightFailed, "the server demands primary keys: choose options that give the table one, such as workload.slap.guidPrimary"},
	1461: {contract.ClassPreflightFailed, "raise max_prepared_stmt_count of the server, or lower spec.load.clients"},
	1153: {contract.ClassPreflightFailed, hintPacket}, // ER_NET_PACKET_TOO_LARGE
	1273: {contract.ClassPreflightFailed, "the server does not know the collation: choose another one"},

	1049: {"", "the database was dropped while the benchmark used it"},
	1071: {"", "an index is longer than the engine allows: choose another engine or fewer indexed columns"},
	1117: {"", "the table has too many columns for the engine: lower the column counts"},
	1118: {"", "a row is longer than the engine allows: lower the column counts"},
	1069: {"", "the table has more indexes than the engine allows: lower the counts of indexed columns"},
	1163: {"", "the engine does not know these columns: choose another one"},
	1164: {"", "the engine does not know AUTO_INCREMENT: choose another one, or leave autoIncrement out"},
	1021: {"", "the server's disk is full"},
	1114: {"", "the table is full: the engine or the disk has reached its limit"},
	1205: {"", "a lock was waited for too long: lower spec.load.clients, or raise innodb_lock_wait_timeout"},
	1213: {"", "the clients run into deadlocks: this workload does not retry them"},
	1020: {"", "a row was changed by another client in the meantime: this workload does not retry that"},
	1062: {"", "two rows have the same unique value"},
	1064: {"", "the server does not understand the statement: check the options that become part of it, such as engineOption"},
	1053: {contract.ClassTargetUnreachable, hintRestarted}, // ER_SERVER_SHUTDOWN
	1077: {contract.ClassTargetUnreachable, hintRestarted},
	1079: {contract.ClassTargetUnreachable, hintRestarted},
	1317: {"", "somebody killed the statement on the server"},
	1927: {contract.ClassTargetUnreachable, "somebody killed the connection on the server"},
	1047: {contract.ClassTargetUnreachable, "the cluster node is not ready (WSREP): wait until it has joined"},
	4031: {contract.ClassTargetUnreachable, "the server closed an idle connection: raise wait_timeout"},
	1292: {"", hintOwn},
	1364: {"", hintOwn},
	1366: {"", "a value does not fit its column, such as a character that the column's character set lacks"},
	3988: {"", "a value has characters that the column's character set lacks: make the table with CHARACTER SET utf8mb4"},
	1406: {"", hintOwn},
	1452: {"", hintOwn},
}

// Number is the server's error number, 0 where the error is not the server's.
func Number(err error) uint16 {
	var me *driverpkg.MySQLError
	if errors.As(err, &me) {
		return me.Number
	}
	return 0
}

// IsConnectionLost reports whether the connection, and not a statement, failed.
func IsConnectionLost(err error) bool {
	var ne net.Error
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, driverpkg.ErrInvalidConn) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.As(err, &ne)
}

// IsTransientConnect reports whether another attempt to connect may succeed soon.
func IsTransientConnect(err error) bool {
	switch Number(err) {
	case 0:
		var de *net.DNSError
		var te *tlsError
		return !errors.As(err, &de) && !errors.As(err, &te) && IsConnectionLost(err)
	case 1040, 1203:
		return true
	}
	return false
}

// FailureOf says what an error means. A *contract.Failure in the chain is returned
// as it is; an error that says nothing of its own class gets the given one.
func FailureOf(err error, class contract.Class) *contract.Failure {
	var failure *contract.Failure
	if errors.As(err, &failure) {
		return failure
	}
	f := &contract.Failure{Class: class, Message: err.Error()}
	var me *driverpkg.MySQLError
	var te *tlsError
	var de *dialError
	switch {
	case errors.As(err, &me):
		m := meanings[me.Number]
		f.MySQLError, f.Hint = me.Number, m.hint
		if m.class != "" {
			f.Class = m.class
		}
	case errors.As(err, &te):
		return tlsHandshakeFailure(te)
	case errors.Is(err, driverpkg.ErrNoTLS):
		f = tlsFailure("the server does not offer TLS")
		f.Hint = "set spec.targets[].tls.mode to Preferred or Disabled, or configure TLS on the server"
	case errors.As(err, &de):
		return unreachable(de)
	case errors.Is(err, driverpkg.ErrCleartextPassword), errors.Is(err, driverpkg.ErrNativePassword),
		errors.Is(err, driverpkg.ErrOldPassword), errors.Is(err, driverpkg.ErrUnknownPlugin):
		f.Class = contract.ClassAuthenticationFailed
		f.Message = "the user's authentication plugin is not one that the runner speaks: " + authPlugin(err)
		f.Hint = "give the user mysql_native_password, caching_sha2_password or ed25519; clear-text plugins need tls.mode VerifyCA or VerifyIdentity"
	case errors.Is(err, driverpkg.ErrPktTooLarge):
		f.Class, f.Hint = contract.ClassPreflightFailed, hintPacket
	case errors.Is(err, context.DeadlineExceeded):
		f.Class = contract.ClassTargetUnreachable
		f.Message = fmt.Sprintf("the server did not answer within %s", connectTimeout)
		f.Hint = "check that spec.targets[].host and port are those of a MySQL or MariaDB server"
	case IsConnectionLost(err):
		f.Class = contract.ClassTargetUnreachable
		f.Message = "the connection to the server was lost: " + err.Error()
		f.Hint = hintRestarted
	}
	return f
}

// authPlugin names the plugin; the driver's own texts speak of DSN parameters.
func authPlugin(err error) string {
	switch {
	case errors.Is(err, driverpkg.ErrCleartextPassword):
		return "mysql_clear_password"
	case errors.Is(err, driverpkg.ErrOldPassword):
		return "mysql_old_password"
	case errors.Is(err, driverpkg.ErrNativePassword):
		return "mysql_native_password"
	}
	return "unknown"
}

func tlsFailure(format string, args ...any) *contract.Failure {
	return &contract.Failure{Class: contract.ClassTLSFailed, Message: fmt.Sprintf(format, args...),
		Hint: "check spec.targets[].tls and the Secrets that it names"}
}

func tlsHandshakeFailure(err *tlsError) *contract.Failure {
	f := tlsFailure("the TLS handshake failed: %v", err)
	var cert *tls.CertificateVerificationError
	var host x509.HostnameError
	switch {
	case errors.As(err, &host):
		f.Hint = "set spec.targets[].tls.serverName to a name of the server's certificate, or use VerifyCA"
	case errors.As(err, &cert):
		f.Hint = "set spec.targets[].tls.caSecretRef to the authority that signed the server's certificate"
	}
	return f
}

func unreachable(err *dialError) *contract.Failure {
	f := &contract.Failure{Class: contract.ClassTargetUnreachable, Message: "the server cannot be reached: " + err.Error(),
		Hint: "check spec.targets[].host and port, and the network policies between the runner and the server"}
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns):
		f.Message = fmt.Sprintf("the host %q cannot be resolved: %s", dns.Name, dns.Err)
		f.Hint = "check spec.targets[].host: it must be a name that the cluster's DNS resolves"
	case errors.Is(err, syscall.ECONNREFUSED):
		f.Hint = "nothing listens there: check spec.targets[].host and port, and that the server runs"
	}
	return f
}
