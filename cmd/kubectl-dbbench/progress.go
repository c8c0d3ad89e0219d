package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"dbbench.dev/operator/api/v1alpha1"
)

// progress shows states as they change: on a terminal as bars that are drawn over, one
// for each benchmark, elsewhere as a line for each step.
type progress struct {
	w     io.Writer
	width func() int // of the terminal; 0 where it is none
	order []string
	last  map[string]state
	drawn int // lines of the bars that are on the screen
}

func newProgress(w io.Writer, width func() int, names []string) *progress {
	return &progress{w: w, width: width, order: names, last: map[string]state{}}
}

// show takes a new state of one of the benchmarks.
func (p *progress) show(key string, s state) {
	before, seen := p.last[key]
	p.last[key] = s
	if width := p.width(); width > 0 {
		p.draw(width)
		return
	}
	if !seen || plainLine(before) != plainLine(s) {
		fmt.Fprintln(p.w, plainLine(s))
	}
}

// plainLine is a step in words.
func plainLine(s state) string {
	line := s.name + ": " + s.reason
	if s.total > 0 {
		line += fmt.Sprintf(", %d of %s done", s.runs, count(int(s.total), "run"))
	}
	return line + s.note()
}

// note is what the message adds to the reason. Of a run under way it only says so.
func (s state) note() string {
	if s.message == "" || s.reason == v1alpha1.ReasonRunning {
		return ""
	}
	return ": " + s.message
}

// draw draws all bars over those that are there.
func (p *progress) draw(width int) {
	names := 0
	for _, s := range p.last {
		names = max(names, utf8.RuneCountInString(s.name))
	}
	names = min(names, max(width-restWidth, shortestName))
	var out strings.Builder
	if p.drawn > 0 {
		fmt.Fprintf(&out, "\x1b[%dA", p.drawn)
	}
	p.drawn = 0
	for _, key := range p.order {
		if s, ok := p.last[key]; ok {
			out.WriteString("\r\x1b[K" + bar(s, names, width-1) + "\n")
			p.drawn++
		}
	}
	_, _ = io.WriteString(p.w, out.String())
}

// The widths of the parts of a bar, in characters.
const (
	shortestName = 12
	barWidth     = 16
	restWidth    = 56 // all but the name
)

// bar is a state in a line of at most width characters, such as
//
//	nightly [########--------]  50% 6/12     1234/s p99 12.3ms
func bar(s state, nameWidth, width int) string {
	filled := int(s.fraction * barWidth)
	runs := ""
	if s.total > 0 {
		runs = fmt.Sprintf("%d/%d", s.runs, s.total)
	}
	line := fmt.Sprintf("%-*s [%s%s] %3.0f%% %-7s", nameWidth, clip(s.name, nameWidth),
		strings.Repeat("#", filled), strings.Repeat("-", barWidth-filled), s.fraction*100, runs)
	if rate := s.rateText(); rate != "" {
		line += fmt.Sprintf(" %8s", rate)
	}
	if p99 := s.p99Text(); p99 != "" {
		line += " p99 " + p99
	}
	switch {
	case s.reason == v1alpha1.ReasonRunning && s.rate == "":
		line += " " + s.phase
	case s.reason != v1alpha1.ReasonRunning:
		line += " " + s.reason + s.note()
	}
	return clip(line, width)
}

// clip cuts a text to so many characters, and marks the cut.
func clip(text string, width int) string {
	text = strings.ReplaceAll(text, "\n", " ")
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:max(width-1, 0)]) + "…"
}
