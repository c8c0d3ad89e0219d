package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// The drawing area of a chart in its own units. Text of 13 units is legible where the
// chart is as narrow as a phone.
const (
	chartWidth, chartHeight         = 460, 300
	plotLeft, plotTop               = 62, 34
	plotRight, plotBottom           = chartWidth - 14, chartHeight - 46
	maxTicks                        = 6
	tickGap                 float64 = 44 // at least between two labels of the x axis
)

// graph is what is to be drawn.
type graph struct {
	title, description string
	xLabel, yLabel     string
	// names label the x axis where its values are no numbers; lines are then at 0, 1, 2…
	names []string
	lines []line
	// logX and logY ask for logarithmic axes.
	logX, logY bool
	// steps draws lines as the outline of bars.
	steps bool
	// ticks are where the x axis is labelled; nil is at round numbers.
	ticks  []float64
	xUnit  func(float64) string
	yUnit  func(float64) string
	noMark bool
}

// line is a series of a graph. Its colour and marker go by its number.
type line struct {
	name   string
	style  int
	dashed bool
	values []xy
}

// xy is a point of a line with its spread.
type xy struct{ x, y, low, high float64 }

// chart is a graph in coordinates, as the page's template draws it.
type chart struct {
	ID, Title, Description, XLabel, YLabel string
	XTicks, YTicks                         []tick
	Lines                                  []drawn
	Left, Top, Right, Bottom, Width        int
	Height, MiddleX, MiddleY               int
}

type tick struct {
	At   string
	Text string
}

type drawn struct {
	Name, Path, Band string
	// Marker is that of the legend.
	Marker string
	Style  int
	Dashed bool
	Marks  []mark
}

type mark struct{ Path, Text string }

// draw lays a graph out. It is false where there is nothing to see.
func draw(id string, g graph) (chart, bool) {
	x, y, ok := g.scales()
	if !ok {
		return chart{}, false
	}
	c := chart{
		ID: id, Title: g.title, Description: g.description, XLabel: g.xLabel, YLabel: g.yLabel,
		Left: plotLeft, Top: plotTop, Right: plotRight, Bottom: plotBottom, Width: chartWidth, Height: chartHeight,
		MiddleX: (plotLeft + plotRight) / 2, MiddleY: (plotTop + plotBottom) / 2,
	}
	for _, v := range y.ticks() {
		c.YTicks = append(c.YTicks, tick{coordinate(y.at(v)), g.yUnit(v)})
	}
	c.XTicks = g.xTicks(x)
	for _, l := range g.lines {
		if len(l.values) > 0 {
			c.Lines = append(c.Lines, g.drawLine(l, x, y))
		}
	}
	return c, true
}

func (g graph) scales() (x, y scale, ok bool) {
	x = scale{from: plotLeft + 10, to: plotRight - 10, log: g.logX, low: math.Inf(1), high: math.Inf(-1)}
	y = scale{from: plotBottom, to: plotTop, log: g.logY, low: math.Inf(1), high: math.Inf(-1)}
	if !g.logY {
		y.low = 0
	}
	for _, l := range g.lines {
		for _, v := range l.values {
			x.include(v.x)
			y.include(v.y)
			y.include(v.low)
			y.include(v.high)
		}
	}
	if math.IsInf(x.high, 0) || math.IsInf(y.high, 0) || y.high <= 0 {
		return x, y, false
	}
	if g.steps || g.noMark {
		x.from, x.to = plotLeft, plotRight
	}
	x.widen()
	y.round()
	return x, y, true
}

func (g graph) xTicks(x scale) (all []tick) {
	values := g.ticks
	text := g.xUnit
	if g.names != nil {
		values = nil
		for i := range g.names {
			values = append(values, float64(i))
		}
		text = func(v float64) string { return g.names[int(v)] }
	} else if values == nil {
		values = x.ticks()
	}
	last := math.Inf(-1)
	for _, v := range values {
		// The first and those far enough from the one before.
		if at := x.at(v); at-last >= tickGap {
			all = append(all, tick{coordinate(at), text(v)})
			last = at
		}
	}
	return all
}

func (g graph) drawLine(l line, x, y scale) drawn {
	d := drawn{Name: l.name, Style: l.style, Dashed: l.dashed}
	var path, upper, lower strings.Builder
	spread := false
	for i, v := range l.values {
		px, py := coordinate(x.at(v.x)), coordinate(y.at(v.y))
		switch {
		case i == 0:
			fmt.Fprintf(&path, "M%s %s", px, py)
		case g.steps:
			fmt.Fprintf(&path, "V%sH%s", py, px)
		default:
			fmt.Fprintf(&path, "L%s %s", px, py)
		}
		if !g.noMark && !g.steps {
			d.Marks = append(d.Marks, mark{marker(l.style, x.at(v.x), y.at(v.y)), l.name + ": " + g.yUnit(v.y)})
		}
		spread = spread || v.high > v.low
	}
	d.Path = path.String()
	if len(d.Marks) > 0 {
		d.Marker = marker(l.style, 13, 6)
	}
	if spread {
		for i, v := range l.values {
			fmt.Fprintf(&upper, "%s%s %s", command(i), coordinate(x.at(v.x)), coordinate(y.at(v.high)))
		}
		for _, v := range slices.Backward(l.values) {
			fmt.Fprintf(&lower, "L%s %s", coordinate(x.at(v.x)), coordinate(y.at(v.low)))
		}
		d.Band = upper.String() + lower.String() + "Z"
	}
	return d
}

// marker is the outline of a line's marker: with the colour, what tells lines apart.
func marker(style int, x, y float64) string {
	const r = 4.5
	switch style % 4 {
	case 1: // a square
		return fmt.Sprintf("M%s %sh8v8h-8Z", coordinate(x-4), coordinate(y-4))
	case 2: // a triangle
		return fmt.Sprintf("M%s %sl5 9h-10Z", coordinate(x), coordinate(y-5.5))
	case 3: // a diamond
		return fmt.Sprintf("M%s %sl5.5 5.5l-5.5 5.5l-5.5 -5.5Z", coordinate(x), coordinate(y-5.5))
	}
	return fmt.Sprintf("M%s %sa%g %g 0 1 0 9 0a%g %g 0 1 0 -9 0Z", coordinate(x-r), coordinate(y), r, r, r, r)
}

func command(i int) string {
	if i == 0 {
		return "M"
	}
	return "L"
}

// scale maps values to coordinates.
type scale struct {
	from, to  float64 // coordinates
	low, high float64 // values
	log       bool
}

func (s *scale) include(v float64) {
	if s.log && v <= 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return
	}
	s.low, s.high = min(s.low, v), max(s.high, v)
}

// widen gives a single value some room.
func (s *scale) widen() {
	if s.low < s.high {
		return
	}
	if s.log {
		s.low, s.high = s.low/2, s.high*2
		return
	}
	s.low, s.high = s.low-1, s.high+1
}

// round extends an axis to round numbers.
func (s *scale) round() {
	if s.log {
		s.low, s.high = roundDown(s.low), roundUp(s.high)
		if s.low == s.high {
			s.low /= 10
		}
		return
	}
	step := s.step()
	s.high = math.Ceil(s.high*1.02/step) * step
}

// roundDown and roundUp go to 1, 2 or 5 times a power of ten.
func roundDown(v float64) float64 {
	p := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{5, 2} {
		if v >= m*p {
			return m * p
		}
	}
	return p
}

func roundUp(v float64) float64 {
	p := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if v <= m*p*(1+1e-9) {
			return m * p
		}
	}
	return 10 * p
}

// step is the distance of ticks on a linear axis: 1, 2 or 5 times a power of ten.
func (s scale) step() float64 { return roundUp(max(s.high-s.low, 1e-12) / maxTicks) }

func (s scale) ticks() (all []float64) {
	if !s.log {
		step := s.step()
		for i := math.Ceil(s.low/step - 1e-9); i*step <= s.high*(1+1e-9); i++ {
			all = append(all, i*step+0) // no negative zero
		}
		return all
	}
	multiples := []float64{1, 2, 5}
	decades := math.Log10(s.high / s.low)
	if decades > 2.5 {
		multiples = multiples[:1]
	}
	factor := math.Pow(10, math.Ceil(decades/(maxTicks+2)))
	for p := math.Pow(10, math.Floor(math.Log10(s.low))); p <= s.high*(1+1e-9); p *= factor {
		for _, m := range multiples {
			if v := m * p; v >= s.low*(1-1e-9) && v <= s.high*(1+1e-9) {
				all = append(all, v)
			}
		}
	}
	return all
}

func (s scale) at(v float64) float64 {
	share := (v - s.low) / (s.high - s.low)
	if s.log {
		share = math.Log(max(v, s.low)/s.low) / math.Log(s.high/s.low)
	}
	return s.from + share*(s.to-s.from)
}

func coordinate(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }

// count is a number with a suffix of thousands, such as 12.5k.
func count(v float64) string {
	for _, u := range []struct {
		suffix string
		size   float64
	}{{"G", 1e9}, {"M", 1e6}, {"k", 1e3}} {
		if v >= u.size {
			return strconv.FormatFloat(v/u.size, 'g', 4, 64) + u.suffix
		}
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}
