package mysql

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"dbbench.dev/operator/runner/contract"
	"dbbench.dev/operator/runner/workload"
)

// Server is what was found out about a server before the load.
type Server struct {
	Version   string
	Variables map[string]string
	// Engines are the names of those that can be used, in capitals.
	Engines map[string]bool
	// Prepared is the number of prepared statements of all clients.
	Prepared int64
}

// MariaDB and MySQL are the flavours.
const (
	MariaDB = "MariaDB"
	MySQL   = "MySQL"
)

// Flavor is MariaDB or MySQL.
func (s Server) Flavor() string {
	if strings.Contains(s.Version, MariaDB) {
		return MariaDB
	}
	return MySQL
}

// hasDatabaseComments: since MariaDB 10.5.
func (s Server) hasDatabaseComments() bool {
	if s.Flavor() != MariaDB {
		return false
	}
	parts := strings.SplitN(s.Version, ".", 3)
	if len(parts) < 3 {
		return false
	}
	major, err1 := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	return err1 == nil && err2 == nil && (major > 10 || major == 10 && minor >= 5)
}

// limits are the variables that preflight looks at.
var limits = []string{
	"version", "max_connections", "max_user_connections", "max_prepared_stmt_count", "max_allowed_packet",
	"read_only", "super_read_only", "innodb_read_only", "sql_require_primary_key", "innodb_force_primary_key",
	"pxc_strict_mode",
}

// Inspect asks a server what it is. It reads with SHOW, see Guard.
func Inspect(s *Session) (Server, error) {
	var server Server
	var err error
	if server.Variables, err = variables(s, limits); err != nil {
		return Server{}, err
	}
	server.Version = server.Variables["version"]
	engines, err := s.table("SHOW ENGINES")
	if err != nil {
		return Server{}, err
	}
	server.Engines = map[string]bool{}
	for _, r := range engines {
		if support := r[1]; support == "YES" || support == "DEFAULT" {
			server.Engines[strings.ToUpper(r[0])] = true
		}
	}
	prepared, err := s.table("SHOW GLOBAL STATUS LIKE 'Prepared_stmt_count'")
	if err != nil {
		return Server{}, err
	}
	if len(prepared) == 1 {
		server.Prepared, _ = strconv.ParseInt(prepared[0][1], 10, 64) // 0 where it is no number
	}
	return server, nil
}

// variables reads those of the named variables that the server has.
func variables(s *Session, names []string) (map[string]string, error) {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = quoteText(n)
	}
	rows, err := s.table("SHOW VARIABLES WHERE Variable_name IN (" + strings.Join(quoted, ", ") + ")")
	if err != nil {
		return nil, err
	}
	out := make(map[string]string, len(rows))
	for _, r := range rows {
		out[strings.ToLower(r[0])] = r[1]
	}
	return out, nil
}

// Check says why the server cannot carry the load, nil if it can. Clients is their
// number over all replicas.
func (s Server) Check(need workload.Requirements, clients int64) *contract.Failure {
	for _, check := range []func(workload.Requirements, int64) *contract.Failure{
		s.checkReadOnly, s.checkEngines, s.checkPrimaryKey, s.checkConnections, s.checkStatements, s.checkPacket,
	} {
		if f := check(need, clients); f != nil {
			return f
		}
	}
	return nil
}

func preflight(hint, format string, args ...any) *contract.Failure {
	return &contract.Failure{Class: contract.ClassPreflightFailed, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// off are the values by which a server says that a protection is not in force.
var off = []string{"", "0", "OFF", "DISABLED", "PERMISSIVE"}

func (s Server) on(variable string) bool {
	return !slices.Contains(off, strings.ToUpper(s.Variables[variable]))
}

func (s Server) checkReadOnly(workload.Requirements, int64) *contract.Failure {
	for _, v := range []string{"read_only", "super_read_only", "innodb_read_only"} {
		if s.on(v) {
			// Also where the user may write in spite of it: a replica must not be written to.
			return preflight(hintReadOnly, "the server is read-only: %s is %s", v, s.Variables[v])
		}
	}
	return nil
}

func (s Server) checkEngines(need workload.Requirements, _ int64) *contract.Failure {
	for _, engine := range need.Engines {
		name := strings.ToUpper(engine)
		if name == "HEAP" {
			name = "MEMORY"
		}
		if !s.Engines[name] {
			return preflight("choose one of: "+strings.Join(slices.Sorted(maps.Keys(s.Engines)), ", "),
				"%s: the server has no storage engine %q", need.EngineField, engine)
		}
	}
	return nil
}

func (s Server) checkPrimaryKey(need workload.Requirements, _ int64) *contract.Failure {
	if !need.NoPrimaryKey {
		return nil
	}
	for _, v := range []string{"sql_require_primary_key", "innodb_force_primary_key", "pxc_strict_mode"} {
		if s.on(v) {
			return preflight("choose options that give the table one, such as workload.slap.guidPrimary, or set "+v+" to OFF",
				"the server demands primary keys (%s is %s), and the workload's tables have none", v, s.Variables[v])
		}
	}
	return nil
}

// number is a variable's value, 0 where the server has none.
func (s Server) number(variable string) int64 {
	n, err := strconv.ParseInt(s.Variables[variable], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func (s Server) checkConnections(need workload.Requirements, clients int64) *contract.Failure {
	const own = 1 // the runner's connection for everything but the load
	wanted := clients*int64(need.Sessions) + own
	for _, v := range []string{"max_connections", "max_user_connections"} {
		if limit := s.number(v); limit > 0 && wanted > limit {
			return preflight(hintConnections, "load.clients is %d, which takes %d connections, but the server's %s is %d",
				clients, wanted, v, limit)
		}
	}
	return nil
}

func (s Server) checkStatements(need workload.Requirements, clients int64) *contract.Failure {
	wanted := clients * int64(need.Statements)
	limit, known := s.Variables["max_prepared_stmt_count"]
	if !known || wanted == 0 || wanted+s.Prepared <= s.number("max_prepared_stmt_count") {
		return nil
	}
	return preflight("raise max_prepared_stmt_count of the server, or lower spec.load.clients",
		"load.clients is %d, which takes %d prepared statements, but the server's max_prepared_stmt_count is %s, of which %d are in use",
		clients, wanted, limit, s.Prepared)
}

func (s Server) checkPacket(need workload.Requirements, _ int64) *contract.Failure {
	const header = 1 << 10 // protocol, and room for what surrounds an argument
	limit := s.number("max_allowed_packet")
	if limit == 0 || int64(need.LargestPacket)+header <= limit {
		return nil
	}
	return preflight(hintPacket, "the workload sends packets of %d bytes, but the server's max_allowed_packet is %d",
		need.LargestPacket, limit)
}
