package mysql

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// performanceVariables are those that decide how fast a server is, of MariaDB and of
// MySQL.
var performanceVariables = words(`
	version version_comment version_compile_machine version_compile_os version_malloc_library version_ssl_library

	aria_pagecache_buffer_size back_log bulk_insert_buffer_size character_set_server collation_server concurrent_insert
	default_storage_engine default_tmp_storage_engine delay_key_write enforce_storage_engine flush general_log
	have_query_cache host_cache_size internal_tmp_mem_storage_engine join_buffer_size join_cache_level key_buffer_size
	large_pages log_output long_query_time low_priority_updates max_allowed_packet max_connections max_heap_table_size
	max_prepared_stmt_count net_buffer_length old_mode open_files_limit optimizer_search_depth optimizer_switch
	performance_schema query_cache_limit query_cache_size query_cache_type read_buffer_size read_rnd_buffer_size
	require_secure_transport skip_name_resolve slow_query_log sort_buffer_size sql_mode table_definition_cache
	table_open_cache table_open_cache_instances temptable_max_mmap temptable_max_ram thread_cache_size thread_handling
	thread_pool_algorithm thread_pool_max_threads thread_pool_oversubscribe thread_pool_size thread_pool_stall_limit
	thread_stack tmp_memory_table_size tmp_table_size transaction_isolation tx_isolation unique_checks userstat

	autocommit binlog_cache_size binlog_checksum binlog_commit_wait_count binlog_commit_wait_usec
	binlog_encryption binlog_expire_logs_seconds binlog_format binlog_group_commit_sync_delay
	binlog_group_commit_sync_no_delay_count binlog_order_commits binlog_row_image binlog_transaction_compression
	binlog_transaction_dependency_tracking encrypt_binlog enforce_gtid_consistency expire_logs_days gtid_mode
	log_bin log_bin_compress log_slave_updates log_replica_updates log_slow_query max_binlog_size
	rpl_semi_sync_master_enabled rpl_semi_sync_master_wait_point rpl_semi_sync_source_enabled
	rpl_semi_sync_source_wait_point slave_parallel_mode slave_parallel_threads replica_parallel_workers sync_binlog
	sync_relay_log wsrep_on wsrep_slave_threads wsrep_sync_wait wsrep_trx_fragment_size

	innodb_adaptive_flushing innodb_adaptive_hash_index innodb_adaptive_hash_index_parts innodb_autoinc_lock_mode
	innodb_buffer_pool_chunk_size innodb_buffer_pool_in_core_file innodb_buffer_pool_instances innodb_buffer_pool_size
	innodb_change_buffer_max_size innodb_change_buffering innodb_checksum_algorithm innodb_commit_concurrency
	innodb_concurrency_tickets innodb_data_file_path innodb_deadlock_detect innodb_dedicated_server
	innodb_default_row_format innodb_doublewrite innodb_doublewrite_batch_size innodb_doublewrite_files
	innodb_doublewrite_pages innodb_encrypt_log innodb_encrypt_tables innodb_file_per_table innodb_fill_factor
	innodb_flush_log_at_timeout innodb_flush_log_at_trx_commit innodb_flush_method innodb_flush_neighbors
	innodb_flush_sync innodb_flushing_avg_loops innodb_fsync_threshold innodb_io_capacity innodb_io_capacity_max
	innodb_lock_wait_timeout innodb_log_buffer_size innodb_log_checksums innodb_log_compressed_pages
	innodb_log_file_buffering innodb_log_file_mmap innodb_log_file_size innodb_log_files_in_group
	innodb_log_write_ahead_size innodb_log_writer_threads innodb_lru_flush_size innodb_lru_scan_depth
	innodb_max_dirty_pages_pct innodb_max_dirty_pages_pct_lwm innodb_max_purge_lag innodb_numa_interleave
	innodb_old_blocks_pct innodb_old_blocks_time innodb_open_files innodb_page_cleaners innodb_page_size
	innodb_parallel_read_threads innodb_purge_batch_size innodb_purge_threads innodb_random_read_ahead
	innodb_read_ahead_threshold innodb_read_io_threads innodb_read_only innodb_redo_log_capacity
	innodb_redo_log_encrypt innodb_redo_log_enabled innodb_rollback_on_timeout innodb_snapshot_isolation
	innodb_spin_wait_delay innodb_stats_auto_recalc innodb_stats_persistent innodb_sync_array_size
	innodb_sync_spin_loops innodb_thread_concurrency innodb_thread_sleep_delay innodb_undo_log_truncate
	innodb_undo_tablespaces innodb_use_atomic_writes innodb_use_fdatasync innodb_use_native_aio
	innodb_write_io_threads
`)

func words(text string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(text) {
		out[w] = true
	}
	return out
}

// Variables are the global variables of a server.
type Variables map[string]string

// ReadVariables reads them with SHOW, see Guard.
func ReadVariables(s *Session) (Variables, error) {
	rows, err := s.table("SHOW GLOBAL VARIABLES")
	if err != nil {
		return nil, err
	}
	out := make(Variables, len(rows))
	for _, r := range rows {
		out[strings.ToLower(r[0])] = r[1]
	}
	return out, nil
}

// Performance returns those that decide how fast the server is; long values are cut.
func (v Variables) Performance() map[string]string {
	out := map[string]string{}
	for name, value := range v {
		if !performanceVariables[name] {
			continue
		}
		if len(value) > maxVariableBytes {
			value = strings.ToValidUTF8(value[:maxVariableBytes], "") + "…"
		}
		out[name] = value
	}
	return out
}

// SHA256 is a hash of all variables but those that tell one server from another of the
// same configuration, or that change by themselves: 64 hexadecimal digits.
func (v Variables) SHA256() string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(v)) {
		if !isIdentity(name, v[name]) {
			fmt.Fprintf(h, "%s=%s\n", name, v[name])
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

var identityVariables = words(`
	hostname port admin_port mysqlx_port extra_port server_id server_uid server_uuid report_port timestamp
	general_log_file slow_query_log_file log_slow_query_file log_bin_basename log_bin_index log_error relay_log relay_log_basename
	relay_log_index bind_address admin_address mysqlx_bind_address
	innodb_stats_modified_counter
`)

var identityParts = []string{"gtid_executed", "gtid_purged", "gtid_current", "gtid_slave", "gtid_binlog", "password", "report_",
	"_node_", "wsrep_cluster", "wsrep_provider_options", "wsrep_start_position", "group_replication_"}

// isIdentity reports whether a variable names a server, or says where something of it is.
func isIdentity(name, value string) bool {
	return identityVariables[name] || strings.HasPrefix(value, "/") ||
		slices.ContainsFunc(identityParts, func(part string) bool { return strings.Contains(name, part) })
}

// statusCounters are those whose change over a run explains its numbers.
var statusCounters = words(`
	Aborted_clients Aborted_connects Binlog_cache_disk_use Binlog_commits Binlog_group_commits Bytes_received Bytes_sent
	Com_begin Com_call_procedure Com_commit Com_delete Com_insert Com_insert_select Com_replace Com_rollback Com_select
	Com_set_option Com_stmt_close Com_stmt_execute Com_stmt_prepare Com_stmt_reprepare Com_update Com_xa_commit Connections
	Created_tmp_disk_tables Created_tmp_tables Handler_commit Handler_delete Handler_read_first Handler_read_key
	Handler_read_last Handler_read_next Handler_read_prev Handler_read_rnd Handler_read_rnd_next Handler_rollback
	Handler_update Handler_write Innodb_buffer_pool_pages_flushed Innodb_buffer_pool_read_ahead
	Innodb_buffer_pool_read_requests Innodb_buffer_pool_reads Innodb_buffer_pool_wait_free
	Innodb_buffer_pool_write_requests Innodb_checkpoint_age Innodb_data_fsyncs Innodb_data_read Innodb_data_reads
	Innodb_data_writes Innodb_data_written Innodb_dblwr_pages_written Innodb_dblwr_writes Innodb_deadlocks
	Innodb_log_waits Innodb_log_write_requests Innodb_log_writes Innodb_os_log_fsyncs Innodb_os_log_written
	Innodb_pages_created Innodb_pages_read Innodb_pages_written Innodb_row_lock_time Innodb_row_lock_waits
	Innodb_rows_deleted Innodb_rows_inserted Innodb_rows_read Innodb_rows_updated Key_read_requests Key_reads
	Key_write_requests Key_writes Opened_tables Qcache_hits Qcache_inserts Qcache_lowmem_prunes Queries Questions
	Select_full_join Select_range Select_scan Slow_queries Sort_merge_passes Sort_range Sort_rows Sort_scan
	Table_locks_immediate Table_locks_waited Table_open_cache_hits Table_open_cache_misses
	Table_open_cache_overflows Threads_created wsrep_flow_control_paused_ns wsrep_local_bf_aborts
	wsrep_local_cert_failures
`)

// maxVariableBytes keeps the environment within a line of the record.
const maxVariableBytes = 200

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
