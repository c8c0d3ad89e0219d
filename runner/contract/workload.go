package contract

// Workload holds exactly one member. The JSON of each member is that of the
// resource's field of the same name, so a run's workload is the spec's with the
// point's values set, and nothing is copied field by field.
type Workload struct {
	Slap      *Slap      `json:"slap,omitempty"`
	OLTP      *OLTP      `json:"oltp,omitempty"`
	LinkBench *LinkBench `json:"linkbench,omitempty"`
	Payload   *Payload   `json:"payload,omitempty"`
	SQL       *SQL       `json:"sql,omitempty"`
}

// Slap is mysqlslap's auto-generated load.
type Slap struct {
	LoadType              string `json:"loadType"`
	Engine                string `json:"engine,omitempty"`
	EngineOption          string `json:"engineOption,omitempty"`
	AutoIncrement         bool   `json:"autoIncrement,omitempty"`
	GUIDPrimary           bool   `json:"guidPrimary,omitempty"`
	SecondaryIndexes      int32  `json:"secondaryIndexes,omitempty"`
	IntColumns            int32  `json:"intColumns"`
	IntColumnsIndexed     bool   `json:"intColumnsIndexed,omitempty"`
	CharColumns           int32  `json:"charColumns"`
	CharColumnsIndexed    bool   `json:"charColumnsIndexed,omitempty"`
	UniqueQueries         int32  `json:"uniqueQueries"`
	UniqueWrites          int32  `json:"uniqueWrites"`
	PreloadRows           int64  `json:"preloadRows"`
	CommitEvery           int64  `json:"commitEvery,omitempty"`
	DetachEvery           int64  `json:"detachEvery,omitempty"`
	ExactCounts           bool   `json:"exactCounts"`
	TimingIncludesConnect bool   `json:"timingIncludesConnect"`
	Seed                  *int64 `json:"seed,omitempty"`
}
