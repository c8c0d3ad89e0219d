package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Workload is what the clients do. Exactly one member is set.
//
// +kubebuilder:validation:XValidation:rule="[has(self.slap), has(self.oltp), has(self.linkbench), has(self.payload), has(self.sql)].filter(x, x).size() == 1",message="exactly one of slap, oltp, linkbench, payload and sql must be set"
type Workload struct {
	// slap is mysqlslap's auto-generated load.
	// +optional
	Slap *Slap `json:"slap,omitempty"`
	// oltp is sysbench's set of OLTP tests.
	// +optional
	OLTP *OLTP `json:"oltp,omitempty"`
	// linkbench is Facebook's social graph.
	// +optional
	LinkBench *LinkBench `json:"linkbench,omitempty"`
	// payload writes values of a given size.
	// +optional
	Payload *Payload `json:"payload,omitempty"`
	// sql is the user's own statements.
	// +optional
	SQL *SQL `json:"sql,omitempty"`
}

// Engine names a storage engine as SHOW ENGINES does.
// +kubebuilder:validation:Pattern=`^[A-Za-z][A-Za-z0-9_]*$`
// +kubebuilder:validation:MaxLength=64
type Engine string

// SlapLoadType is the kind of statements that slap sends.
// +kubebuilder:validation:Enum=Write;Read;Key;Update;Mixed
type SlapLoadType string

// The load types of slap.
const (
	// SlapWrite sends INSERTs.
	SlapWrite SlapLoadType = "Write"
	// SlapRead sends SELECTs that scan the table.
	SlapRead SlapLoadType = "Read"
	// SlapKey sends SELECTs by primary key.
	SlapKey SlapLoadType = "Key"
	// SlapUpdate sends UPDATEs, by primary key where there is one.
	SlapUpdate SlapLoadType = "Update"
	// SlapMixed alternates INSERT and SELECT.
	SlapMixed SlapLoadType = "Mixed"
)

// Slap is mysqlslap's auto-generated load. Fields say which option they stand for.
//
// +kubebuilder:validation:XValidation:rule="!(self.autoIncrement && self.guidPrimary)",message="autoIncrement and guidPrimary exclude each other"
// +kubebuilder:validation:XValidation:rule="self.loadType != 'Key' || self.autoIncrement || self.guidPrimary",message="loadType Key needs autoIncrement or guidPrimary"
// +kubebuilder:validation:XValidation:rule="self.intColumns + self.charColumns > 0",message="at least one of intColumns and charColumns must be greater than 0"
type Slap struct {
	// loadType is Write, Read, Key, Update or Mixed (--auto-generate-sql-load-type).
	// Default Mixed. Note that mysqlslap looks at the first letter alone and takes
	// "insert" for mixed; write Write for INSERTs.
	// +optional
	// +kubebuilder:default=Mixed
	LoadType SlapLoadType `json:"loadType,omitempty"`
	// engine of the table (--engine). Default: the server's.
	// +optional
	Engine Engine `json:"engine,omitempty"`
	// engineOption is appended to CREATE TABLE, such as MAX_ROWS=9 (--engine=name:option).
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_=, ]*$`
	EngineOption string `json:"engineOption,omitempty"`
	// autoIncrement adds a serial key (--auto-generate-sql-add-autoincrement).
	// Default false.
	// +optional
	// +kubebuilder:default=false
	AutoIncrement bool `json:"autoIncrement,omitempty"`
	// guidPrimary adds a primary key of UUIDs (--auto-generate-sql-guid-primary).
	// Default false.
	// +optional
	// +kubebuilder:default=false
	GUIDPrimary bool `json:"guidPrimary,omitempty"`
	// secondaryIndexes is the number of further unique columns
	// (--auto-generate-sql-secondary-indexes). Default 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=60
	SecondaryIndexes int32 `json:"secondaryIndexes,omitempty"`
	// intColumns is the number of INT columns (--number-int-cols). Default 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=512
	IntColumns *int32 `json:"intColumns,omitempty"`
	// intColumnsIndexed adds an index per INT column. Default false.
	// +optional
	IntColumnsIndexed bool `json:"intColumnsIndexed,omitempty"`
	// charColumns is the number of VARCHAR(128) columns (--number-char-cols). Default 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=512
	CharColumns *int32 `json:"charColumns,omitempty"`
	// charColumnsIndexed adds an index per VARCHAR column. Default false.
	// +optional
	CharColumnsIndexed bool `json:"charColumnsIndexed,omitempty"`
	// uniqueQueries is the size of the list of statements
	// (--auto-generate-sql-unique-query-number). Default 10.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	UniqueQueries int32 `json:"uniqueQueries,omitempty"`
	// uniqueWrites is the number of distinct INSERTs of the pre-load
	// (--auto-generate-sql-unique-write-number). Default 10.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	UniqueWrites int32 `json:"uniqueWrites,omitempty"`
	// preloadRows is the number of rows before a run
	// (--auto-generate-sql-write-number). Default 100.
	// +optional
	// +kubebuilder:default=100
	// +kubebuilder:validation:Minimum=0
	PreloadRows *int64 `json:"preloadRows,omitempty"`
	// commitEvery commits after so many statements, with autocommit off (--commit).
	// Default 0: autocommit.
	// +optional
	// +kubebuilder:validation:Minimum=0
	CommitEvery int64 `json:"commitEvery,omitempty"`
	// detachEvery reconnects after so many statements (--detach). Default 0: never.
	// +optional
	// +kubebuilder:validation:Minimum=0
	DetachEvery int64 `json:"detachEvery,omitempty"`
	// exactCounts counts as mysqlslap does: one pre-loaded row less than asked for,
	// one statement more in the list, the remainder of events over clients dropped.
	// Default true.
	// +optional
	// +kubebuilder:default=true
	ExactCounts *bool `json:"exactCounts,omitempty"`
	// timingIncludesConnect counts connecting in the elapsed time, as mysqlslap
	// does. Default true.
	// +optional
	// +kubebuilder:default=true
	TimingIncludesConnect *bool `json:"timingIncludesConnect,omitempty"`
	// seed makes the generated values the same in every run. Default: another for
	// each run, as mysqlslap.
	// +optional
	Seed *int64 `json:"seed,omitempty"`
}

// OLTPScript is one of sysbench's tests.
// +kubebuilder:validation:Enum=PointSelect;ReadOnly;ReadWrite;WriteOnly;UpdateIndex;UpdateNonIndex;Insert;Delete;BulkInsert;RandomPoints;RandomRanges
type OLTPScript string

// OLTP is sysbench's set of OLTP tests. Fields say which option they stand for.
//
// +kubebuilder:validation:XValidation:rule="!(self.script in ['RandomPoints', 'RandomRanges']) || self.tables == 1",message="RandomPoints and RandomRanges use one table"
type OLTP struct {
	// script is the test. Default ReadWrite.
	// +optional
	// +kubebuilder:default=ReadWrite
	Script OLTPScript `json:"script,omitempty"`
	// compat is the generation of sysbench whose tables and statements are used:
	// sysbench-0.5 (one table per transaction, text SQL, SELECT pad), sysbench-1.0
	// (the default) or sysbench-1.1.
	// +optional
	// +kubebuilder:default=sysbench-1.0
	// +kubebuilder:validation:Enum=sysbench-0.5;sysbench-1.0;sysbench-1.1
	Compat string `json:"compat,omitempty"`
	// tables is the number of tables (tables, oltp-tables-count). Default 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	Tables int32 `json:"tables,omitempty"`
	// tableSize is the number of rows of each table (table_size). Default 10000.
	// +optional
	// +kubebuilder:default=10000
	// +kubebuilder:validation:Minimum=1
	TableSize int64 `json:"tableSize,omitempty"`
	// engine of the tables (mysql_storage_engine). Default InnoDB.
	// +optional
	// +kubebuilder:default=InnoDB
	Engine Engine `json:"engine,omitempty"`
	// createTableOptions are appended to CREATE TABLE (create_table_options).
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_=, ]*$`
	CreateTableOptions string `json:"createTableOptions,omitempty"`
	// autoIncrement declares the key AUTO_INCREMENT (auto_inc). Default true.
	// +optional
	// +kubebuilder:default=true
	AutoIncrement *bool `json:"autoIncrement,omitempty"`
	// secondary declares id a plain key instead of the primary one (secondary).
	// Default false.
	// +optional
	Secondary bool `json:"secondary,omitempty"`
	// createSecondary adds the index on k after the load (create_secondary). Default true.
	// +optional
	// +kubebuilder:default=true
	CreateSecondary *bool `json:"createSecondary,omitempty"`
	// bigIntIDs declares ids BIGINT, for tables of more than 2^31 rows. Default false.
	// +optional
	BigIntIDs bool `json:"bigIntIDs,omitempty"`
	// pointSelects per transaction (point_selects). Default 10.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=0
	PointSelects *int32 `json:"pointSelects,omitempty"`
	// rangeSelects switches the four kinds of range query (range_selects). Default true.
	// +optional
	// +kubebuilder:default=true
	RangeSelects *bool `json:"rangeSelects,omitempty"`
	// rangeSize is the number of rows of a range (range_size). Default 100.
	// +optional
	// +kubebuilder:default=100
	// +kubebuilder:validation:Minimum=1
	RangeSize int64 `json:"rangeSize,omitempty"`
	// simpleRanges per transaction (simple_ranges). Default 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	SimpleRanges *int32 `json:"simpleRanges,omitempty"`
	// sumRanges per transaction (sum_ranges). Default 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	SumRanges *int32 `json:"sumRanges,omitempty"`
	// orderRanges per transaction (order_ranges). Default 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	OrderRanges *int32 `json:"orderRanges,omitempty"`
	// distinctRanges per transaction (distinct_ranges). Default 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	DistinctRanges *int32 `json:"distinctRanges,omitempty"`
	// indexUpdates per transaction (index_updates). Default 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	IndexUpdates *int32 `json:"indexUpdates,omitempty"`
	// nonIndexUpdates per transaction (non_index_updates). Default 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	NonIndexUpdates *int32 `json:"nonIndexUpdates,omitempty"`
	// deleteInserts per transaction (delete_inserts). Default 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	DeleteInserts *int32 `json:"deleteInserts,omitempty"`
	// skipTransaction leaves out BEGIN and COMMIT (skip_trx). Default false.
	// +optional
	SkipTransaction bool `json:"skipTransaction,omitempty"`
	// randomPoints of RandomPoints (random_points). Default 10.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	RandomPoints int32 `json:"randomPoints,omitempty"`
	// numberOfRanges of RandomRanges (number_of_ranges). Default 10.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	NumberOfRanges int32 `json:"numberOfRanges,omitempty"`
	// delta is the width of a range of RandomRanges (delta). Default 5.
	// +optional
	// +kubebuilder:default=5
	// +kubebuilder:validation:Minimum=0
	Delta *int32 `json:"delta,omitempty"`
	// reconnectEvery reconnects after so many events (reconnect). Default 0: never.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ReconnectEvery int64 `json:"reconnectEvery,omitempty"`
	// statements are Prepared by the server (db-ps-mode=auto) or sent as Text
	// (disable). Default Prepared, and Text with compat sysbench-0.5.
	// +optional
	// +kubebuilder:validation:Enum=Prepared;Text
	Statements string `json:"statements,omitempty"`
	// distribution of the ids.
	// +optional
	Distribution *Distribution `json:"distribution,omitempty"`
	// ignoreErrors are the MySQL error numbers after which an event is run again,
	// within one latency sample. Default 1213, 1020, 1205.
	// +optional
	// +listType=set
	// +kubebuilder:default={1213,1020,1205}
	// +kubebuilder:validation:MaxItems=64
	IgnoreErrors []int32 `json:"ignoreErrors,omitzero"`
	// noRollbackOnRetry sends no ROLLBACK before an event is run again, as sysbench.
	// Default false.
	// +optional
	NoRollbackOnRetry bool `json:"noRollbackOnRetry,omitempty"`
	// loaders is the number of connections that load the tables. Default 4.
	// +optional
	// +kubebuilder:default=4
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1024
	Loaders int32 `json:"loaders,omitempty"`
	// seed makes the generated values the same in every run. Default: another for each run.
	// +optional
	Seed *int64 `json:"seed,omitempty"`
}

// Distribution is how random ids spread over a range.
type Distribution struct {
	// type is Uniform, Gaussian, Special (with the skew of sysbench 1.0),
	// SpecialCorrected, Pareto or Zipfian. Default: that of the generation of
	// sysbench, Special or Uniform.
	// +optional
	// +kubebuilder:validation:Enum=Uniform;Gaussian;Special;SpecialCorrected;Pareto;Zipfian
	Type string `json:"type,omitempty"`
	// iterations of the bell (rand-spec-iter). Default 12.
	// +optional
	// +kubebuilder:default=12
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Iterations int32 `json:"iterations,omitempty"`
	// specialPercent is the width of the special band in percent of the range
	// (rand-spec-pct). Default 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	SpecialPercent int32 `json:"specialPercent,omitempty"`
	// specialShare is the percentage of values in the special band (rand-spec-res). Default 75.
	// +optional
	// +kubebuilder:default=75
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	SpecialShare *int32 `json:"specialShare,omitempty"`
	// paretoH is the parameter h (rand-pareto-h). Default "0.2".
	// +optional
	// +kubebuilder:default="0.2"
	// +kubebuilder:validation:Pattern=`^0\.[0-9]{1,6}$`
	ParetoH string `json:"paretoH,omitempty"`
	// zipfianExponent is the exponent (rand-zipfian-exp). Default "0.8".
	// +optional
	// +kubebuilder:default="0.8"
	// +kubebuilder:validation:Pattern=`^[0-9]\.[0-9]{1,6}$`
	ZipfianExponent string `json:"zipfianExponent,omitempty"`
}

// Percent is a percentage as a decimal number, such as "8.9886601".
// +kubebuilder:validation:Pattern=`^[0-9]{1,3}(\.[0-9]{1,9})?$`
type Percent string

// LinkBench is Facebook's social graph: nodes, links and their counts.
//
// +kubebuilder:validation:XValidation:rule="self.maxID > self.startID",message="maxID must be greater than startID"
type LinkBench struct {
	// startID is the first node. Default 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	StartID int64 `json:"startID,omitempty"`
	// maxID is one more than the last node (maxid1). Default 10000001: about 10 GB.
	// +optional
	// +kubebuilder:default=10000001
	// +kubebuilder:validation:Minimum=2
	MaxID int64 `json:"maxID,omitempty"`
	// linkTypes is the number of types of link (link_type_count). Default 2.
	// +optional
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	LinkTypes int32 `json:"linkTypes,omitempty"`
	// nlinksMax caps the links of a node. Default: no cap. Without it the graph has at least 960,000
	// links however few nodes there are.
	// +optional
	// +kubebuilder:validation:Minimum=1
	NLinksMax *int64 `json:"nlinksMax,omitempty"`
	// engine of the tables. Default InnoDB.
	// +optional
	// +kubebuilder:default=InnoDB
	Engine Engine `json:"engine,omitempty"`
	// partitions of the table of links. Default 16; 0 is none.
	// +optional
	// +kubebuilder:default=16
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1024
	Partitions *int32 `json:"partitions,omitempty"`
	// loaders is the number of connections that load the graph. Default 10.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1024
	Loaders int32 `json:"loaders,omitempty"`
	// loadBatch is the number of rows of an INSERT of the load. Default 1024.
	// +optional
	// +kubebuilder:default=1024
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65536
	LoadBatch int32 `json:"loadBatch,omitempty"`
	// linkDataSize is the median size of a link's payload, in bytes. Default 8.
	// +optional
	// +kubebuilder:default=8
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=255
	LinkDataSize *int32 `json:"linkDataSize,omitempty"`
	// nodeDataSize is the median size of a node's payload, in bytes. Default 128.
	// +optional
	// +kubebuilder:default=128
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1048576
	NodeDataSize *int32 `json:"nodeDataSize,omitempty"`
	// mix is the share of each operation.
	// +optional
	// +kubebuilder:default={}
	Mix LinkBenchMix `json:"mix,omitzero"`
	// maxFailedRequests ends a client after so many failed operations; -1 is never.
	// Default 100.
	// +optional
	// +kubebuilder:default=100
	// +kubebuilder:validation:Minimum=-1
	MaxFailedRequests *int32 `json:"maxFailedRequests,omitempty"`
	// writeUncorrelatedBug reads the parameters of uncorrelated writes as the
	// original does, from those of reads. Default true.
	// +optional
	// +kubebuilder:default=true
	WriteUncorrelatedBug *bool `json:"writeUncorrelatedBug,omitempty"`
	// leftoverBug divides a node's links over the types as the original does. Default true.
	// +optional
	// +kubebuilder:default=true
	LeftoverBug *bool `json:"leftoverBug,omitempty"`
	// seed of the load and the requests. Default: another for each run.
	// +optional
	Seed *int64 `json:"seed,omitempty"`
}

// LinkBenchMix is the share of each operation in percent. The shares add to 100.
type LinkBenchMix struct {
	// addLink is the share of new links (addlink). Default 8.9886601.
	// +optional
	// +kubebuilder:default="8.9886601"
	AddLink Percent `json:"addLink,omitempty"`
	// deleteLink is the share of removed links (deletelink). Default 2.9907664.
	// +optional
	// +kubebuilder:default="2.9907664"
	DeleteLink Percent `json:"deleteLink,omitempty"`
	// updateLink is the share of changed links (updatelink). Default 8.0122125.
	// +optional
	// +kubebuilder:default="8.0122125"
	UpdateLink Percent `json:"updateLink,omitempty"`
	// countLink is the share of look-ups of a count (countlink). Default 4.8863567.
	// +optional
	// +kubebuilder:default="4.8863567"
	CountLink Percent `json:"countLink,omitempty"`
	// getLink is the share of look-ups of single links (getlink). Default 0.5261142.
	// +optional
	// +kubebuilder:default="0.5261142"
	GetLink Percent `json:"getLink,omitempty"`
	// getLinkList is the share of reads of a node's links (getlinklist). Default 50.7119145.
	// +optional
	// +kubebuilder:default="50.7119145"
	GetLinkList Percent `json:"getLinkList,omitempty"`
	// getNode is the share of reads of a node (getnode). Default 12.9326683.
	// +optional
	// +kubebuilder:default="12.9326683"
	GetNode Percent `json:"getNode,omitempty"`
	// addNode is the share of new nodes (addnode). Default 2.5732789.
	// +optional
	// +kubebuilder:default="2.5732789"
	AddNode Percent `json:"addNode,omitempty"`
	// updateNode is the share of changed nodes (updatenode). Default 7.366437.
	// +optional
	// +kubebuilder:default="7.366437"
	UpdateNode Percent `json:"updateNode,omitempty"`
	// deleteNode is the share of removed nodes (deletenode). Default 1.0115914.
	// +optional
	// +kubebuilder:default="1.0115914"
	DeleteNode Percent `json:"deleteNode,omitempty"`
}

// PayloadOperation is what payload measures.
// +kubebuilder:validation:Enum=Insert;Update;UpdateAll;Replace
type PayloadOperation string

// The operations of payload.
const (
	// PayloadInsert adds rows.
	PayloadInsert PayloadOperation = "Insert"
	// PayloadUpdate changes rows by key.
	PayloadUpdate PayloadOperation = "Update"
	// PayloadUpdateAll changes all rows with one statement.
	PayloadUpdateAll PayloadOperation = "UpdateAll"
	// PayloadReplace replaces rows by key.
	PayloadReplace PayloadOperation = "Replace"
)

// Payload writes values of a given size, by key.
//
// +kubebuilder:validation:XValidation:rule="!has(self.minSize) || self.lengths == 'Uniform'",message="minSize goes with lengths: Uniform"
// +kubebuilder:validation:XValidation:rule="self.autocommit || self.commitEvery > 0",message="commitEvery must be greater than 0 where autocommit is false"
type Payload struct {
	// operation that is measured. Default Insert.
	// +optional
	// +kubebuilder:default=Insert
	Operation PayloadOperation `json:"operation,omitempty"`
	// size of a value in bytes, such as 1, 1Ki or 1Mi: of the values that are
	// written by Insert and Replace, and of those that Update finds. Default 1Ki.
	// +optional
	// +kubebuilder:default="1Ki"
	Size resource.Quantity `json:"size,omitzero"`
	// toSize is the size that Update, UpdateAll and Replace write. Default: size.
	// +optional
	ToSize *resource.Quantity `json:"toSize,omitempty"`
	// lengths is Fixed (the default: every value has the size) or Uniform (between
	// minSize and the size).
	// +optional
	// +kubebuilder:default=Fixed
	// +kubebuilder:validation:Enum=Fixed;Uniform
	Lengths string `json:"lengths,omitempty"`
	// minSize is the least length where lengths is Uniform. Default 1.
	// +optional
	MinSize *resource.Quantity `json:"minSize,omitempty"`
	// rows that are inserted, or are there to be updated or replaced. Default 1000.
	// +optional
	// +kubebuilder:default=1000
	// +kubebuilder:validation:Minimum=1
	Rows int64 `json:"rows,omitempty"`
	// engine of the table. Default InnoDB.
	// +optional
	// +kubebuilder:default=InnoDB
	Engine Engine `json:"engine,omitempty"`
	// keyType is BigInt (the default) or Int.
	// +optional
	// +kubebuilder:default=BigInt
	// +kubebuilder:validation:Enum=BigInt;Int
	KeyType string `json:"keyType,omitempty"`
	// column is the type of the value's column: Auto (the default) takes the
	// smallest of Blob, MediumBlob and LongBlob that holds the sizes, or VarChar.
	// +optional
	// +kubebuilder:default=Auto
	// +kubebuilder:validation:Enum=Auto;VarChar;Blob;MediumBlob;LongBlob
	Column string `json:"column,omitempty"`
	// autocommit commits each statement. Default true.
	// +optional
	// +kubebuilder:default=true
	Autocommit *bool `json:"autocommit,omitempty"`
	// commitEvery commits after so many statements where autocommit is false. Default 100.
	// +optional
	// +kubebuilder:default=100
	// +kubebuilder:validation:Minimum=1
	CommitEvery int64 `json:"commitEvery,omitempty"`
	// tablePerClient gives each client a table of its own. Default false.
	// +optional
	TablePerClient bool `json:"tablePerClient,omitempty"`
	// alphabet of the values: Binary (the default), Printable or Digits.
	// +optional
	// +kubebuilder:default=Binary
	// +kubebuilder:validation:Enum=Binary;Printable;Digits
	Alphabet string `json:"alphabet,omitempty"`
	// checksum records a digest of the table's content after each run; with several
	// targets contentIdentical says whether they hold the same. Default false.
	// +optional
	Checksum bool `json:"checksum,omitempty"`
	// seed of the values. Default 0: the same values in every run and on every target.
	// +optional
	// +kubebuilder:default=0
	Seed int64 `json:"seed,omitempty"`
}

// SQL is the user's own statements. Texts may hold several statements, separated
// as the mysql client does, DELIMITER included.
//
// +kubebuilder:validation:XValidation:rule="has(self.statements) != has(self.configMapKeyRef)",message="exactly one of statements and configMapKeyRef must be set"
type SQL struct {
	// setup runs once before the data is used, on one connection.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	Setup string `json:"setup,omitempty"`
	// pre runs before each run, post after it, outside the measured time.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	Pre string `json:"pre,omitempty"`
	// post runs after each run.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	Post string `json:"post,omitempty"`
	// cleanup runs at the end, before the database is dropped.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	Cleanup string `json:"cleanup,omitempty"`
	// statements are the events.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	Statements []SQLStatement `json:"statements,omitempty"`
	// configMapKeyRef is a ConfigMap's key with the statements as one text, each an event.
	// +optional
	ConfigMapKeyRef *corev1.ConfigMapKeySelector `json:"configMapKeyRef,omitempty"`
	// order is Weighted (the default: drawn by weight) or Sequential.
	// +optional
	// +kubebuilder:default=Weighted
	// +kubebuilder:validation:Enum=Weighted;Sequential
	Order string `json:"order,omitempty"`
	// parameters are generated values, used in statements as :name.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Parameters []SQLParameter `json:"parameters,omitempty"`
	// retryErrors are the MySQL error numbers after which an event is run again. Default: none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	RetryErrors []int32 `json:"retryErrors,omitempty"`
	// seed of the parameters. Default: another for each run.
	// +optional
	Seed *int64 `json:"seed,omitempty"`
}

// SQLStatement is an event: one statement, or several in a transaction.
type SQLStatement struct {
	// name of the operation in the results.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// sql is one statement, or several where transaction is true.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	SQL string `json:"sql"`
	// weight in a Weighted order. Default 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Weight *int32 `json:"weight,omitempty"`
	// transaction puts the statements between BEGIN and COMMIT. Default false.
	// +optional
	Transaction bool `json:"transaction,omitempty"`
}

// SQLParameter generates a value for each event.
type SQLParameter struct {
	// name, used as :name.
	// +required
	// +kubebuilder:validation:Pattern=`^[a-zA-Z_][a-zA-Z0-9_]*$`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// type of the generator: Sequence, Uniform, Zipfian (integers from min to max),
	// String (random letters, min to max long) or List (one of values).
	// +required
	// +kubebuilder:validation:Enum=Sequence;Uniform;Zipfian;String;List
	Type string `json:"type"`
	// min of the range. Default 1.
	// +optional
	// +kubebuilder:default=1
	Min *int64 `json:"min,omitempty"`
	// max of the range. Default 100.
	// +optional
	// +kubebuilder:default=100
	Max *int64 `json:"max,omitempty"`
	// values of a List.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4096
	Values []string `json:"values,omitempty"`
}
