package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A daemon is a process that outlives the command that started it. It is known by its
// pid and the time of its start, so that a pid that was given to another process is
// never taken for it.
type daemon struct {
	pid   int
	start uint64 // in clock ticks since boot, field 22 of /proc/PID/stat
}

// daemonEnv is all that a daemon gets of an environment: the user's own may hold
// proxies, credentials and options of etcd.
var daemonEnv = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"}

// startDaemon starts a program with its output in a log file, unless it runs.
func (s *sandbox) startDaemon(name string, argv ...string) error {
	if s.daemonAlive(name) {
		return nil
	}
	if err := os.MkdirAll(s.in("log"), 0o755); err != nil {
		return err
	}
	log, err := os.OpenFile(s.logFile(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = s.state
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = daemonEnv
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	start, err := startTime(cmd.Process.Pid)
	if err != nil {
		return fmt.Errorf("start %s: it ended at once; see %s", name, log.Name())
	}
	record := fmt.Sprintf("%d %d\n", cmd.Process.Pid, start)
	return errors.Join(os.WriteFile(s.pidFile(name), []byte(record), 0o644), cmd.Process.Release())
}

func (s *sandbox) pidFile(name string) string { return s.in("pid", name) }
func (s *sandbox) logFile(name string) string { return s.in("log", name+".log") }

// lastLine is what a daemon said last.
func (s *sandbox) lastLine(name string) string {
	text, err := os.ReadFile(s.logFile(name))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return lines[len(lines)-1]
}

// readDaemon reads what startDaemon recorded.
func (s *sandbox) readDaemon(name string) (daemon, error) {
	text, err := os.ReadFile(s.pidFile(name))
	if err != nil {
		return daemon{}, err
	}
	var d daemon
	if _, err := fmt.Sscan(string(text), &d.pid, &d.start); err != nil {
		return daemon{}, fmt.Errorf("%s: %w", s.pidFile(name), err)
	}
	return d, nil
}

func (s *sandbox) daemonAlive(name string) bool {
	d, err := s.readDaemon(name)
	return err == nil && d.alive()
}

// deadDaemons are those that were started and do not run.
func (s *sandbox) deadDaemons() []string {
	var dead []string
	for _, name := range daemons {
		if d, err := s.readDaemon(name); err == nil && !d.alive() {
			dead = append(dead, name)
		}
	}
	return dead
}

// forgetDead removes the records of daemons that have ended, so that one that ends
// from now on is noticed.
func (s *sandbox) forgetDead() {
	for _, name := range s.deadDaemons() {
		s.say("%s has ended; starting it again", name)
		_ = os.Remove(s.pidFile(name)) // startDaemon writes it anew
	}
}

func (d daemon) alive() bool {
	start, err := startTime(d.pid)
	return err == nil && start == d.start
}

// stopDaemon ends a daemon: with SIGTERM, and after patience with SIGKILL.
func (s *sandbox) stopDaemon(name string, patience time.Duration) error {
	d, err := s.readDaemon(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if !d.alive() {
			break
		}
		if err := syscall.Kill(d.pid, signal); err != nil {
			return fmt.Errorf("stop %s (pid %d): %w", name, d.pid, err)
		}
		for end := time.Now().Add(patience); d.alive() && time.Now().Before(end); {
			time.Sleep(20 * time.Millisecond)
		}
	}
	if d.alive() {
		return fmt.Errorf("stop %s: pid %d is still there", name, d.pid)
	}
	return os.Remove(s.pidFile(name))
}

// startTime reads when a process began. A zombie counts as gone.
func startTime(pid int) (uint64, error) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, err
	}
	return parseStat(string(text))
}

func parseStat(text string) (uint64, error) {
	// The second field is the program's name in parentheses and may hold anything.
	_, rest, ok := strings.Cut(text[strings.LastIndexByte(text, ')')+1:], " ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 20 {
		return 0, fmt.Errorf("not a stat line: %q", text)
	}
	if fields[0] == "Z" {
		return 0, os.ErrNotExist
	}
	return strconv.ParseUint(fields[19], 10, 64)
}
