//go:build browser

package report

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

var screenshots = flag.String("screenshots", "", "keep pictures of the reports in this directory")

const browserPackage = "apt-get install -y --no-install-recommends chromium"

// harness shows the report in a frame of the wanted width and writes what it finds of it
// into its own body. The report forbids scripts, so that the looking is done from here.
const harness = `<!doctype html><title>harness</title><body style="margin:0">
<iframe id="f" src="/report" style="border:0;width:%dpx;height:800px"></iframe><pre id="out"></pre><script>
const f = document.getElementById("f");
f.onload = () => {
  const d = f.contentDocument, root = d.documentElement, wide = [];
  for (const e of d.querySelectorAll("body *")) {
    if (e.closest(".scroll > *") || e.closest("svg > *")) continue;
    const r = e.getBoundingClientRect();
    if (r.right > root.clientWidth + 1) wide.push(e.tagName + "." + (e.className.baseVal ?? e.className) + " to " + Math.round(r.right));
  }
  document.getElementById("out").textContent = JSON.stringify({
    width: root.clientWidth, scrollWidth: root.scrollWidth, wide: wide.slice(0, 10), charts: d.querySelectorAll("figure > svg").length,
    unnamed: [...d.querySelectorAll("figure > svg")].filter(s => !s.querySelector("title")?.textContent || !s.querySelector("desc")?.textContent).length,
    dark: f.contentWindow.matchMedia("(prefers-color-scheme: dark)").matches, background: f.contentWindow.getComputedStyle(d.body).backgroundColor,
    smallest: Math.min(...[...d.querySelectorAll("figure > svg text")].filter(t => t.getBoundingClientRect().height > 0).map(t => 13 * t.getScreenCTM().a * (parseFloat(f.contentWindow.getComputedStyle(t).fontSize) / 13))),
  });
};
</script>`

type finding struct {
	Width, ScrollWidth, Charts, Unnamed int
	Wide                                []string
	Dark                                bool
	Background                          string
	Smallest                            float64
}

// TestBrowser opens reports in headless Chromium, as wide as a phone and as a desk's
// screen, in both colour schemes.
func TestBrowser(t *testing.T) {
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("%v: install it with: %s", err, browserPackage)
	}
	for name, in := range map[string]Input{"comparison": comparison(), "matrix": matrixInput()} {
		page := mustBuild(t, in).HTML
		for _, width := range []int{390, 1280} {
			server := serve(page, width)
			for _, dark := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%d/dark=%v", name, width, dark), func(t *testing.T) {
					f := look(t, chromium, server.URL+"/harness", dark)
					if f.Width != width || f.ScrollWidth > f.Width || len(f.Wide) > 0 {
						t.Errorf("%d wide, of which %d are shown; beyond the edge are %v", f.ScrollWidth, f.Width, f.Wide)
					}
					if f.Charts < 5 || f.Unnamed > 0 {
						t.Errorf("%d charts, %d without title or description", f.Charts, f.Unnamed)
					}
					if f.Dark != dark || (f.Background == "rgb(252, 252, 251)") == dark {
						t.Errorf("dark is %v, the background %s", f.Dark, f.Background)
					}
					const legible = 9.5
					if f.Smallest < legible {
						t.Errorf("text of %.1f pixels", f.Smallest)
					}
				})
			}
			server.Close()
		}
		picture(t, chromium, name, page)
	}
}

func serve(page []byte, width int) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		switch r.URL.Path {
		case "/report":
			_, _ = w.Write(page)
		case "/harness":
			fmt.Fprintf(w, harness, width)
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	}))
}

var output = regexp.MustCompile(`(?s)<pre id="out">(.*?)</pre>`)

// look opens a page and returns what the harness has found. What the browser complains
// of is an error.
func look(t *testing.T, chromium, url string, dark bool) finding {
	t.Helper()
	dom, complaints := run(t, chromium, dark, "--window-size=1600,900", "--hide-scrollbars", "--virtual-time-budget=5000", "--dump-dom", url)
	if len(complaints) > 0 {
		t.Errorf("the console says: %s", complaints)
	}
	found := output.FindStringSubmatch(dom)
	if found == nil {
		t.Fatalf("no finding in %.500s", dom)
	}
	var f finding
	if err := json.Unmarshal([]byte(html.UnescapeString(found[1])), &f); err != nil {
		t.Fatalf("%v: %q", err, found[1])
	}
	return f
}

// picture opens a report from a file and keeps pictures of it, if they are wanted.
func picture(t *testing.T, chromium, name string, page []byte) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(file, page, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dark := range []bool{false, true} {
		out := filepath.Join(t.TempDir(), "report.png")
		if *screenshots != "" {
			out = filepath.Join(*screenshots, fmt.Sprintf("%s-%s.png", name, map[bool]string{false: "light", true: "dark"}[dark]))
		}
		_, complaints := run(t, chromium, dark, "--window-size=1280,2600", "--hide-scrollbars", "--screenshot="+out, "file://"+file)
		if len(complaints) > 0 {
			t.Errorf("%s: the console says: %s", name, complaints)
		}
		if info, err := os.Stat(out); err != nil || info.Size() < 10000 {
			t.Errorf("%s: no picture: %v", name, err)
		}
	}
}

func run(t *testing.T, chromium string, dark bool, args ...string) (stdout string, complaints []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	scheme := "--blink-settings=preferredColorScheme=1"
	if dark {
		scheme = "--blink-settings=preferredColorScheme=0"
	}
	cmd := exec.CommandContext(ctx, chromium, append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--no-first-run", "--enable-logging=stderr", "--user-data-dir=" + t.TempDir(), scheme}, args...)...)
	var out, errors strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errors
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, errors.String())
	}
	for _, line := range strings.Split(errors.String(), "\n") {
		if strings.Contains(line, "CONSOLE") {
			complaints = append(complaints, line)
		}
	}
	return out.String(), complaints
}
