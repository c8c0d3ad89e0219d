package mysql

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"dbbench.dev/operator/runner/contract"
)

// What the benchmark makes bears its mark, a comment that the server keeps:
//
//	dbbench:<namespace>/<name>:<uid>:<created>
//
// A table carries it as its own comment. A database carries it as its comment where
// the server has that (MariaDB 10.5), so that it is never there without the mark;
// elsewhere as the comment of an empty table, ownerTable. Whatever does not bear the
// mark is somebody else's: it is not written to, and not dropped.
//
// The marks are read with SHOW, never with SELECT: they leave no trace in the
// counters that a workload is measured by.
const (
	markPrefix = "dbbench:"
	notePrefix = "_dbbench_" // of the tables that the benchmark keeps notes in
	ownerTable = "_dbbench_owner"
	probeTable = "_dbbench_probe"
)

const (
	erDatabaseExists = 1007
	erNoSuchDatabase = 1008 // DROP of one
	erUnknownDB      = 1049
	erTableExists    = 1050
)

// Owner is the resource on whose behalf tables are made.
type Owner struct {
	Namespace, Name, UID string
}

// OwnerOf is the owner of a run's data.
func OwnerOf(r contract.Run) Owner { return Owner{r.Namespace, r.Benchmark, r.BenchmarkUID} }

// mark is the text that says so.
func (o Owner) mark(created time.Time) string {
	return fmt.Sprintf("%s%s/%s:%s:%s", markPrefix, o.Namespace, o.Name, o.UID, created.UTC().Format("20060102T150405Z"))
}

// owns reports whether a comment is a mark of ours. A resource that was deleted and
// made again under its name has another UID; what it left behind is still its own.
func (o Owner) owns(comment string) bool {
	rest, ok := strings.CutPrefix(comment, markPrefix)
	fields := strings.Split(rest, ":")
	return ok && len(fields) == 3 && (fields[1] == o.UID || fields[0] == o.Namespace+"/"+o.Name)
}

// Guard is what stands between a workload and a database: all tables are made and
// dropped through it.
type Guard struct {
	session  *Session
	owner    Owner
	database string
	// existing allows a database that is not ours.
	existing bool
	// comment is whether databases have comments on this server.
	comment bool
	// ours is whether the database is ours as a whole; known after Acquire.
	ours bool
	now  func() time.Time
}

// NewGuard returns a guard over the target's database. The session must not have
// selected a database.
func NewGuard(session *Session, server Server, run contract.Run, target contract.Target) *Guard {
	return &Guard{
		session: session, owner: OwnerOf(run), database: target.Database, existing: target.AllowExistingDatabase,
		comment: server.hasDatabaseComments(), now: time.Now,
	}
}

// Acquire creates the database, or finds that it is ours, or that it may be used, and
// selects it. Of tables it checks that none of the named ones is somebody else's.
func (g *Guard) Acquire(tables []string) error {
	if err := g.acquireDatabase(); err != nil {
		return err
	}
	if err := g.Use(); err != nil {
		return err
	}
	for _, name := range tables {
		if _, err := g.Owned(name); err != nil {
			return err
		}
	}
	return nil
}

// Use selects the database.
func (g *Guard) Use() error {
	_, err := g.session.Exec("USE " + quoteName(g.database))
	return err
}

func (g *Guard) acquireDatabase() error {
	create := "CREATE DATABASE " + quoteName(g.database)
	mark := quoteText(g.owner.mark(g.now()))
	if g.comment {
		create += " COMMENT " + mark
	}
	_, err := g.session.Exec(create)
	switch {
	case err == nil && !g.comment:
		_, err = g.session.Exec(fmt.Sprintf("CREATE TABLE %s.%s (id INT PRIMARY KEY) COMMENT %s",
			quoteName(g.database), quoteName(ownerTable), mark))
		g.ours = err == nil
		return err
	case err == nil:
		g.ours = true
		return nil
	case Number(err) == erDatabaseExists:
	case Number(err) == 1044 && g.existing: // may not create it, and need not
	default:
		return err
	}
	exists, ours, err := g.inspect()
	switch {
	case err != nil:
		return err
	case ours:
		g.ours = true
		return nil
	case exists && g.existing:
		return nil
	case exists:
		return g.notOwned()
	}
	return &contract.Failure{Class: contract.ClassPreflightFailed, MySQLError: 1044,
		Message: fmt.Sprintf("the database %q does not exist and the user may not create it", g.database), Hint: hintPrivileges}
}

func (g *Guard) notOwned() error {
	return &contract.Failure{Class: contract.ClassDatabaseNotOwned,
		Message: fmt.Sprintf("the database %q exists and does not bear the mark of this benchmark (%s/%s); nothing in it was touched",
			g.database, g.owner.Namespace, g.owner.Name),
		Hint: "choose another spec.targets[].database; or drop this one if it is not needed; or set allowExistingDatabase: true, and the benchmark makes its own tables in it"}
}

// inspect reports whether the database exists, and whether it bears our mark.
func (g *Guard) inspect() (exists, ours bool, err error) {
	rows, err := g.session.table("SHOW CREATE DATABASE " + quoteName(g.database))
	switch {
	case Number(err) == erUnknownDB:
		return false, false, nil
	case err != nil:
		return false, false, err
	case !g.comment:
		t, err := g.status(ownerTable)
		return true, g.owner.owns(t.comment), err
	}
	// The comment is the last part of the statement that SHOW gives. A mark holds no
	// quote, so that what stands between the quotes is all of it.
	_, comment, _ := strings.Cut(rows[0][1], " COMMENT '")
	return true, g.owner.owns(strings.TrimSuffix(comment, "'")), nil
}

// table is what SHOW TABLE STATUS says of one. A view has neither engine nor mark.
type table struct{ name, engine, comment string }

// tables lists the tables of the database, all of them where name is empty.
func (g *Guard) tables(name string) ([]table, error) {
	query := "SHOW TABLE STATUS FROM " + quoteName(g.database)
	if name != "" {
		query += " LIKE " + quoteText(name)
	}
	rows, err := g.session.table(query)
	if err != nil {
		return nil, err
	}
	const nameColumn, engineColumn, commentColumn = 0, 1, 17
	var out []table
	for _, r := range rows {
		// LIKE takes the underscores of a name for any character.
		if name == "" || r[nameColumn] == name {
			out = append(out, table{r[nameColumn], r[engineColumn], r[commentColumn]})
		}
	}
	return out, nil
}

// status returns the named table; its name is empty where there is none.
func (g *Guard) status(name string) (table, error) {
	list, err := g.tables(name)
	if err != nil || len(list) == 0 {
		return table{}, err
	}
	return list[0], nil
}

// Owned is part of workload.Tables.
func (g *Guard) Owned(name string) (bool, error) {
	t, err := g.status(name)
	if err != nil || t.name == "" {
		return false, err
	}
	if !g.owner.owns(t.comment) {
		return false, g.tableNotOwned(name)
	}
	return true, nil
}

func (g *Guard) tableNotOwned(name string) error {
	return &contract.Failure{Class: contract.ClassDatabaseNotOwned,
		Message: fmt.Sprintf("the table %s.%s exists and does not bear the mark of this benchmark (%s/%s); it was not touched",
			g.database, name, g.owner.Namespace, g.owner.Name),
		Hint: "choose another spec.targets[].database, or rename or drop the table"}
}

// Create is part of workload.Tables.
func (g *Guard) Create(name, definition, options, engine string) error {
	if err := g.Drop(name); err != nil {
		return err
	}
	if options != "" {
		options = " " + options
	}
	_, err := g.session.Exec("CREATE TABLE " + quoteName(name) + " " + definition + options +
		" COMMENT = " + quoteText(g.owner.mark(g.now())))
	if Number(err) == erTableExists { // made by somebody else since it was looked for
		return g.tableNotOwned(name)
	}
	if err != nil {
		return fmt.Errorf("create table %s: %w", name, err)
	}
	return g.checkEngine(name, engine)
}

// checkEngine refuses a table that silently got another engine than it was to have.
func (g *Guard) checkEngine(name, engine string) error {
	if engine == "" {
		return nil
	}
	t, err := g.status(name)
	if err != nil || sameEngine(t.engine, engine) {
		return err
	}
	return &contract.Failure{Class: contract.ClassPreflightFailed,
		Message: fmt.Sprintf("the server made the table %s with the engine %s in place of %s", name, t.engine, engine),
		Hint:    "choose an engine that SHOW ENGINES lists; NO_ENGINE_SUBSTITUTION in sql_mode has the server say so itself"}
}

func sameEngine(a, b string) bool { return canonicalEngine(a) == canonicalEngine(b) }

// Enter selects the database where it exists and may be used.
func (g *Guard) Enter() (bool, error) {
	exists, ours, err := g.inspect()
	if err != nil || !exists || !ours && !g.existing {
		return false, err
	}
	return true, g.Use()
}

// Adopt is part of workload.Adoption. A view has no comment to bear a mark, and is left
// to who made it.
func (g *Guard) Adopt(make func() error) error {
	before, err := g.tables("")
	if err != nil {
		return err
	}
	failed := make()
	after, err := g.tables("")
	for _, t := range after {
		known := slices.ContainsFunc(before, func(b table) bool { return b.name == t.name })
		if err == nil && !known && t.engine != "" {
			_, err = g.session.Exec("ALTER TABLE " + g.qualified(t.name) + " COMMENT = " + quoteText(g.owner.mark(g.now())))
		}
	}
	return errors.Join(failed, err)
}

// Clear is part of workload.Adoption.
func (g *Guard) Clear() error {
	list, err := g.tables("")
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(t table) bool { return !g.owner.owns(t.comment) || strings.HasPrefix(t.name, notePrefix) })
	return g.drop(list)
}

// drop drops tables, whichever of them refer to others.
func (g *Guard) drop(list []table) error {
	if len(list) == 0 {
		return nil
	}
	names := make([]string, len(list))
	for i, t := range list {
		names[i] = g.qualified(t.name)
	}
	for _, q := range []string{"SET foreign_key_checks = 0", "DROP TABLE " + strings.Join(names, ", "), "SET foreign_key_checks = 1"} {
		if _, err := g.session.Exec(q); err != nil {
			return err
		}
	}
	return nil
}

func (g *Guard) qualified(name string) string { return quoteName(g.database) + "." + quoteName(name) }

// Drop drops a table of the benchmark, if there is one.
func (g *Guard) Drop(name string) error {
	owned, err := g.Owned(name)
	if err != nil || !owned {
		return err
	}
	_, err = g.session.Exec("DROP TABLE " + quoteName(g.database) + "." + quoteName(name))
	return err
}

// probes are statements that need a privilege. The first are prepared, which tells as
// well; the others have to be executed, on an empty table.
var (
	preparedProbes = map[string]string{
		"INSERT": "INSERT INTO %s VALUES (1)", "SELECT": "SELECT id FROM %s",
		"UPDATE": "UPDATE %s SET id = 1", "DELETE": "DELETE FROM %s",
	}
	executedProbes = map[string]string{
		"ALTER": "ALTER TABLE %s ADD COLUMN more INT", "INDEX": "CREATE INDEX probe ON %s (id)", "LOCK TABLES": "LOCK TABLES %s WRITE",
	}
)

// Probe finds out by trying whether the user has the given privileges; what a list of
// grants means with roles, the server knows best. Nothing is touched but an empty table
// that is made and dropped.
func (g *Guard) Probe(privileges []string) error {
	if err := g.Create(probeTable, "(id INT PRIMARY KEY)", "", ""); err != nil {
		return err
	}
	for _, p := range privileges {
		if err := g.probe(p); err != nil {
			return err
		}
	}
	return g.Drop(probeTable)
}

func (g *Guard) probe(privilege string) error {
	if text, ok := executedProbes[privilege]; ok {
		if _, err := g.session.Exec(fmt.Sprintf(text, quoteName(probeTable))); err != nil {
			return err
		}
		_, err := g.session.Exec("UNLOCK TABLES")
		return err
	}
	h, err := g.session.Prepare(fmt.Sprintf(preparedProbes[privilege], quoteName(probeTable)))
	if err != nil {
		return err
	}
	return g.session.Deallocate(h)
}

// Release drops all that is the benchmark's: its tables, and then the database where
// that is its own and nobody else has put anything into it. It returns what it left
// behind for that reason, and is content where there is nothing.
func (g *Guard) Release() (left []string, err error) {
	exists, ours, err := g.inspect()
	if err != nil || !exists || !ours && !g.existing {
		return nil, err
	}
	list, err := g.tables("")
	if err != nil {
		return nil, err
	}
	var made []table
	for _, t := range list {
		switch {
		case t.name == ownerTable && ours: // goes last, with the database
		case g.owner.owns(t.comment):
			made = append(made, t)
		default:
			left = append(left, t.name)
		}
	}
	if err := g.drop(made); err != nil {
		return nil, err
	}
	if !ours {
		return nil, nil
	}
	routines, err := g.routines()
	if err != nil {
		return nil, err
	}
	if left = append(left, routines...); len(left) > 0 {
		return left, nil
	}
	_, err = g.session.Exec("DROP DATABASE " + quoteName(g.database))
	if Number(err) == erNoSuchDatabase {
		return nil, nil
	}
	return nil, err
}

// routines are what a database holds beside tables.
func (g *Guard) routines() ([]string, error) {
	var names []string
	for _, query := range []string{
		"SHOW PROCEDURE STATUS WHERE Db = " + quoteText(g.database),
		"SHOW FUNCTION STATUS WHERE Db = " + quoteText(g.database),
		"SHOW EVENTS FROM " + quoteName(g.database),
	} {
		rows, err := g.session.table(query)
		if Number(err) == 1044 { // events are hidden from who may not make them
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			names = append(names, r[1])
		}
	}
	return names, nil
}
