package mysql

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	driverpkg "github.com/go-sql-driver/mysql"

	"dbbench.dev/operator/runner/contract"
)

const (
	// maxMessage is the length in bytes to which the server's error texts are cut. The
	// protocol allows 16 MiB; MySQL and MariaDB keep to 512 characters.
	maxMessage = 2 << 10
	// maxTable is the size in bytes of a result that is kept as a whole. Those that the
	// runner asks for, such as SHOW VARIABLES, take some tens of kilobytes.
	maxTable = 4 << 20
	// minSecret is the length below which a password is no secret, and would be found in
	// every text.
	minSecret = 4
)

// hidden stands for a password in a text.
const hidden = "[hidden]"

// wary is deferred by every call that hears of the server, and makes an error fit to
// be shown: a server may quote what it was sent, the password included, and at any
// length. The driver makes a new error each time, so it may be changed. It panics on
// some packets that are cut short.
func (c *Connector) wary(err *error) {
	if p := recover(); p != nil {
		*err = nonsense(fmt.Sprint(p))
	}
	var me *driverpkg.MySQLError
	if *err == nil || !errors.As(*err, &me) {
		return
	}
	if len(c.config.Passwd) >= minSecret {
		me.Message = strings.ReplaceAll(me.Message, c.config.Passwd, hidden)
	}
	if len(me.Message) > maxMessage {
		end := maxMessage
		for end > 0 && !utf8.RuneStart(me.Message[end]) {
			end--
		}
		me.Message = fmt.Sprintf("%s… (%d bytes)", me.Message[:end], len(me.Message))
	}
}

// nonsense is the failure of a server whose answers make no sense.
func nonsense(why string) *contract.Failure {
	return &contract.Failure{Class: contract.ClassTargetUnreachable, Message: "the server's answer cannot be made sense of: " + why,
		Hint: "check that spec.targets[].host and port are those of a MySQL or MariaDB server, and what is between it and the runner"}
}
