package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
)

// manager is the process, and how its metrics are read.
type manager struct {
	process *exec.Cmd
	url     string
	token   string
	client  *http.Client
}

func (c *cluster) startManager(ctx context.Context, program string, stderr io.Writer) (*manager, error) {
	token, err := c.metricsToken(ctx)
	if err != nil {
		return nil, err
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	m := &manager{url: "https://" + address + "/metrics", token: token,
		// The manager makes itself a certificate when it starts.
		client: &http.Client{Timeout: time.Minute, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}}
	m.process = exec.Command(program, "--runner-image=simulated", "--metrics-bind-address="+address, "--health-probe-bind-address=0", "--zap-log-level=error")
	m.process.Env = append(os.Environ(), "KUBECONFIG="+c.kubeconfig)
	m.process.Stderr = stderr
	return m, m.process.Start()
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// requestToken asks the API server for a token of an account.
func (c *cluster) requestToken(ctx context.Context, account *corev1.ServiceAccount) (string, error) {
	request := &authenticationv1.TokenRequest{}
	err := c.SubResource("token").Create(ctx, account, request)
	return request.Status.Token, err
}

func (m *manager) stop() {
	_ = m.process.Process.Signal(syscall.SIGTERM)
	_ = m.process.Wait() // its exit code says nothing more
}

// peakMemory is the most that was resident, in bytes.
func (m *manager) peakMemory() (int64, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", m.process.Process.Pid))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "VmHWM:"); ok {
			var kib int64
			_, err := fmt.Sscan(text, &kib)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("%s has no line VmHWM", f.Name())
}

// measurement is what the manager's own metrics say since its start.
type measurement struct {
	reads, writes   float64 // API requests, without those for the lease
	reconciliations float64
	cpu             float64 // seconds
	buckets         []*dto.Bucket
}

func (m *manager) measure(ctx context.Context) (measurement, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, m.url, nil)
	if err != nil {
		return measurement{}, err
	}
	r.Header.Set("Authorization", "Bearer "+m.token)
	answer, err := m.client.Do(r)
	if err != nil {
		return measurement{}, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return measurement{}, fmt.Errorf("metrics: %s", answer.Status)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(answer.Body)
	if err != nil {
		return measurement{}, err
	}
	return summarise(families), nil
}

func summarise(families map[string]*dto.MetricFamily) measurement {
	var all measurement
	for _, metric := range families["rest_client_requests_total"].GetMetric() {
		for _, label := range metric.Label {
			switch {
			case label.GetName() != "method":
			case label.GetValue() == http.MethodGet:
				all.reads += metric.Counter.GetValue()
			case label.GetValue() != http.MethodPut: // the lease, alone, is put
				all.writes += metric.Counter.GetValue()
			}
		}
	}
	for _, metric := range families["controller_runtime_reconcile_time_seconds"].GetMetric() {
		all.reconciliations += float64(metric.Histogram.GetSampleCount())
		all.buckets = metric.Histogram.Bucket
	}
	for _, metric := range families["process_cpu_seconds_total"].GetMetric() {
		all.cpu = metric.Counter.GetValue()
	}
	return all
}

// quantile is the time in seconds that a part of the reconciliations did not exceed,
// with the bucket's values spread evenly, as Prometheus's histogram_quantile has it.
func (m measurement) quantile(q float64) float64 {
	if len(m.buckets) == 0 {
		return 0
	}
	rank := q * float64(m.buckets[len(m.buckets)-1].GetCumulativeCount())
	lower, below := 0.0, 0.0
	for _, b := range m.buckets {
		count := float64(b.GetCumulativeCount())
		if count >= rank && !math.IsInf(b.GetUpperBound(), 1) {
			return lower + (b.GetUpperBound()-lower)*(rank-below)/max(count-below, 1)
		}
		lower, below = b.GetUpperBound(), count
	}
	return lower
}
