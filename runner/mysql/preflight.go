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
	// Prepared and Connected are the numbers of prepared statements and of connections that
	// the server had when it was asked, the runner's own among them.
	Prepared, Connected int64
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
	"read_only", "super_read_only", "innodb_read_only", "transaction_read_only", "tx_read_only",
	"sql_require_primary_key", "innodb_force_primary_key", "pxc_strict_mode", "wsrep_mode", "group_replication_group_name",
	"disabled_storage_engines", "enforce_storage_engine", "max_heap_table_size", "innodb_redo_log_capacity",
	"innodb_log_file_size", "innodb_log_files_in_group",
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
	counters, err := s.table("SHOW GLOBAL STATUS WHERE Variable_name IN ('Prepared_stmt_count', 'Threads_connected')")
	if err != nil {
		return Server{}, err
	}
	for _, r := range counters {
		n, _ := strconv.ParseInt(r[1], 10, 64) // 0 where it is no number
		if strings.EqualFold(r[0], "Threads_connected") {
			server.Connected = n
		} else {
			server.Prepared = n
		}
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

// Demand is a load and what its workload needs.
type Demand struct {
	workload.Requirements
	// Clients is their number over all replicas.
	Clients, Replicas int64
}

// Check says why the server cannot carry the load, nil if it can.
func (s Server) Check(d Demand) *contract.Failure {
	for _, check := range []func(Demand) *contract.Failure{
		s.checkReadOnly, s.checkEngines, s.checkPrimaryKey, s.checkConnections, s.checkStatements, s.checkPacket, s.checkMemory,
	} {
		if f := check(d); f != nil {
			return f
		}
	}
	return nil
}

// Warnings are what does not keep the load from running, and will show in its numbers.
func (s Server) Warnings(d Demand) (all []string) {
	// MySQL's manual has the redo log hold ten times the largest BLOB.
	const share = 10
	redo := s.redoBytes()
	if redo > 0 && int64(d.LargestPacket) > redo/share {
		all = append(all, fmt.Sprintf("values of up to %d bytes are more than a tenth of the server's redo log of %d bytes:"+
			" much of the time may be spent in checkpoints", d.LargestPacket, redo))
	}
	return all
}

// redoBytes is the capacity of InnoDB's redo log, 0 where the server does not say.
func (s Server) redoBytes() int64 {
	if n := s.number("innodb_redo_log_capacity"); n > 0 { // since MySQL 8.0.30
		return n
	}
	return s.number("innodb_log_file_size") * max(1, s.number("innodb_log_files_in_group"))
}

func preflight(hint, format string, args ...any) *contract.Failure {
	return &contract.Failure{Class: contract.ClassPreflightFailed, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// off are the values by which a server says that a protection is not in force.
var off = []string{"", "0", "OFF", "DISABLED", "PERMISSIVE"}

func (s Server) on(variable string) bool {
	return !slices.Contains(off, strings.ToUpper(s.Variables[variable]))
}

func (s Server) checkReadOnly(Demand) *contract.Failure {
	for _, v := range []string{"read_only", "super_read_only", "innodb_read_only", "transaction_read_only", "tx_read_only"} {
		if s.on(v) {
			// Also where the user may write in spite of it: a replica must not be written to.
			return preflight(hintReadOnly, "the server is read-only: %s is %s", v, s.Variables[v])
		}
	}
	return nil
}

func (s Server) checkEngines(d Demand) *contract.Failure {
	for _, engine := range d.Engines {
		name := canonicalEngine(engine)
		switch enforced := canonicalEngine(s.Variables["enforce_storage_engine"]); {
		case slices.ContainsFunc(s.disabledEngines(), func(disabled string) bool { return disabled == name }):
			return preflight("choose one of: "+strings.Join(s.usableEngines(), ", ")+"; or take it out of the server's disabled_storage_engines",
				"%s: the server has disabled the storage engine %q (disabled_storage_engines is %s)", d.EngineField, engine, s.Variables["disabled_storage_engines"])
		case !s.Engines[name]:
			return preflight("choose one of: "+strings.Join(s.usableEngines(), ", "),
				"%s: the server has no storage engine %q", d.EngineField, engine)
		case enforced != "" && enforced != name:
			return preflight("choose "+s.Variables["enforce_storage_engine"]+", or unset the server's enforce_storage_engine",
				"%s: the server makes all tables with the engine %s (enforce_storage_engine), not %s", d.EngineField, s.Variables["enforce_storage_engine"], engine)
		}
	}
	return nil
}

// canonicalEngine is the name by which SHOW ENGINES lists an engine, in capitals.
func canonicalEngine(name string) string {
	name = strings.ToUpper(strings.TrimSpace(name))
	if name == "HEAP" {
		return "MEMORY"
	}
	return name
}

func (s Server) disabledEngines() (names []string) {
	for name := range strings.SplitSeq(s.Variables["disabled_storage_engines"], ",") {
		names = append(names, canonicalEngine(name))
	}
	return names
}

func (s Server) usableEngines() []string {
	disabled := s.disabledEngines()
	names := slices.Sorted(maps.Keys(s.Engines))
	return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(disabled, name) })
}

func (s Server) checkPrimaryKey(d Demand) *contract.Failure {
	if !d.NoPrimaryKey {
		return nil
	}
	demand := func(v string) *contract.Failure {
		return preflight("choose options that give the table one, such as workload.slap.guidPrimary, or relax "+v,
			"the server demands primary keys (%s is %s), and the workload's tables have none", v, s.Variables[v])
	}
	for _, v := range []string{"sql_require_primary_key", "innodb_force_primary_key", "pxc_strict_mode"} {
		if s.on(v) {
			return demand(v)
		}
	}
	if strings.Contains(s.Variables["wsrep_mode"], "REQUIRED_PRIMARY_KEY") { // MariaDB with Galera
		return demand("wsrep_mode")
	}
	if s.Variables["group_replication_group_name"] != "" {
		return demand("group_replication_group_name")
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

func (s Server) checkConnections(d Demand) *contract.Failure {
	const own = 1 // the runner's connection for everything but the load
	wanted := d.Clients*int64(d.Sessions) + own
	used := max(0, s.Connected-max(1, d.Replicas))
	if limit := s.number("max_connections"); limit > 0 && wanted+used > limit {
		return preflight(hintConnections, "load.clients is %d, which takes %d connections, but the server's max_connections is %d, of which %d are in use",
			d.Clients, wanted, limit, used)
	}
	if limit := s.number("max_user_connections"); limit > 0 && wanted > limit {
		return preflight(hintConnections, "load.clients is %d, which takes %d connections, but the account's max_user_connections is %d",
			d.Clients, wanted, limit)
	}
	return nil
}

func (s Server) checkStatements(d Demand) *contract.Failure {
	wanted := d.Clients * int64(d.Statements)
	limit, known := s.Variables["max_prepared_stmt_count"]
	if !known || wanted == 0 || wanted+s.Prepared <= s.number("max_prepared_stmt_count") {
		return nil
	}
	return preflight("raise max_prepared_stmt_count of the server, or lower spec.load.clients",
		"load.clients is %d, which takes %d prepared statements, but the server's max_prepared_stmt_count is %s, of which %d are in use",
		d.Clients, wanted, limit, s.Prepared)
}

func (s Server) checkPacket(d Demand) *contract.Failure {
	const header = 1 << 10 // protocol, and room for what surrounds an argument
	limit := s.number("max_allowed_packet")
	if limit == 0 || int64(d.LargestPacket)+header <= limit {
		return nil
	}
	return preflight(hintPacket, "the workload sends packets of %d bytes, but the server's max_allowed_packet is %d",
		d.LargestPacket, limit)
}

// checkMemory is of the engine whose tables are in memory. How much room there is on a
// disk, servers do not say.
func (s Server) checkMemory(d Demand) *contract.Failure {
	limit := s.number("max_heap_table_size")
	inMemory := slices.ContainsFunc(d.Engines, func(name string) bool { return canonicalEngine(name) == "MEMORY" })
	if !inMemory || limit == 0 || d.TableBytes <= limit {
		return nil
	}
	return preflight("raise max_heap_table_size of the server, choose another engine, or load less",
		"%s: a table of about %d bytes does not fit into the server's max_heap_table_size of %d", d.EngineField, d.TableBytes, limit)
}
