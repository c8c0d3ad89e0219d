package mysql

import (
	"strconv"
)

// performanceVariables are those that decide how fast a server is.
var performanceVariables = []string{
	"version", "version_comment", "version_compile_machine", "version_compile_os", "version_ssl_library",
	"autocommit", "binlog_cache_size", "binlog_format", "binlog_row_image", "character_set_server", "collation_server",
	"default_storage_engine", "expire_logs_days", "gtid_mode", "have_query_cache", "innodb_adaptive_hash_index",
	"innodb_autoinc_lock_mode", "innodb_buffer_pool_instances", "innodb_buffer_pool_size", "innodb_change_buffering",
	"innodb_checksum_algorithm", "innodb_dedicated_server", "innodb_doublewrite", "innodb_file_per_table",
	"innodb_flush_log_at_trx_commit", "innodb_flush_method", "innodb_flush_neighbors", "innodb_io_capacity",
	"innodb_io_capacity_max", "innodb_lock_wait_timeout", "innodb_log_buffer_size", "innodb_log_file_size",
	"innodb_log_files_in_group", "innodb_page_size", "innodb_purge_threads", "innodb_read_io_threads",
	"innodb_redo_log_capacity", "innodb_thread_concurrency", "innodb_use_native_aio", "innodb_write_io_threads",
	"key_buffer_size", "log_bin", "log_slow_query", "long_query_time", "max_connections", "max_heap_table_size",
	"max_prepared_stmt_count", "performance_schema", "query_cache_size", "query_cache_type", "rpl_semi_sync_master_enabled",
	"rpl_semi_sync_source_enabled", "general_log", "slow_query_log", "sql_mode", "sync_binlog", "table_definition_cache",
	"table_open_cache", "table_open_cache_instances", "thread_cache_size", "thread_handling", "thread_pool_size",
	"tmp_table_size", "transaction_isolation", "tx_isolation", "wsrep_on",
}

// statusCounters are those whose change over a run explains its numbers.
var statusCounters = map[string]bool{
	"Aborted_clients": true, "Aborted_connects": true, "Bytes_received": true, "Bytes_sent": true, "Com_begin": true,
	"Com_call_procedure": true, "Com_commit": true, "Com_delete": true, "Com_insert": true, "Com_insert_select": true,
	"Com_replace": true, "Com_rollback": true, "Com_select": true, "Com_set_option": true, "Com_stmt_close": true,
	"Com_stmt_execute": true, "Com_stmt_prepare": true, "Com_update": true, "Com_xa_commit": true, "Connections": true,
	"Created_tmp_disk_tables": true, "Created_tmp_tables": true, "Handler_commit": true, "Handler_delete": true,
	"Handler_read_first": true, "Handler_read_key": true, "Handler_read_next": true, "Handler_read_rnd": true,
	"Handler_read_rnd_next": true, "Handler_rollback": true, "Handler_update": true, "Handler_write": true,
	"Innodb_buffer_pool_pages_flushed": true, "Innodb_buffer_pool_read_requests": true,
	"Innodb_buffer_pool_reads": true, "Innodb_buffer_pool_wait_free": true, "Innodb_data_fsyncs": true,
	"Innodb_data_read": true, "Innodb_data_reads": true, "Innodb_data_writes": true, "Innodb_data_written": true,
	"Innodb_deadlocks": true, "Innodb_log_waits": true, "Innodb_log_writes": true, "Innodb_os_log_fsyncs": true,
	"Innodb_os_log_written": true, "Innodb_row_lock_time": true, "Innodb_row_lock_waits": true,
	"Innodb_rows_deleted": true, "Innodb_rows_inserted": true, "Innodb_rows_read": true, "Innodb_rows_updated": true,
	"Qcache_hits": true, "Queries": true, "Questions": true, "Select_full_join": true, "Select_scan": true,
	"Slow_queries": true, "Sort_merge_passes": true, "Sort_rows": true, "Table_locks_waited": true,
	"Table_open_cache_misses": true, "Threads_created": true,
}

// maxVariableBytes keeps the environment within a line of the record.
const maxVariableBytes = 200

// PerformanceVariables reads the variables that decide how fast the server is; long
// values are cut.
func PerformanceVariables(s *Session) (map[string]string, error) {
	out, err := variables(s, performanceVariables)
	for name, value := range out {
		if len(value) > maxVariableBytes {
			out[name] = value[:maxVariableBytes] + "…"
		}
	}
	return out, err
}

// Status is a reading of the server's counters.
type Status map[string]int64

// ReadStatus reads the counters.
func ReadStatus(s *Session) (Status, error) {
	rows, err := s.table("SHOW GLOBAL STATUS")
	if err != nil {
		return nil, err
	}
	out := Status{}
	for _, r := range rows {
		if !statusCounters[r[0]] {
			continue
		}
		if n, err := strconv.ParseInt(r[1], 10, 64); err == nil {
			out[r[0]] = n
		}
	}
	return out, nil
}

// Since returns the change of the counters from an earlier reading. Counters that
// did not change are left out.
func (s Status) Since(before Status) map[string]int64 {
	out := map[string]int64{}
	for name, n := range s {
		if d := n - before[name]; d != 0 {
			out[name] = d
		}
	}
	return out
}
