package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// get reads a path of the API as the administrator. up polls with it, as each
// start of the kubectl in the one big binary costs a good part of a second.
func (s *sandbox) get(ctx context.Context, path string) ([]byte, error) {
	client, err := s.client()
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	url := fmt.Sprintf("https://%s:%d%s", nodeIP, apiPort, path)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s", path, response.Status)
	}
	return text, err
}

func (s *sandbox) client() (*http.Client, error) {
	cert, err := tls.LoadX509KeyPair(s.pki("admin.crt"), s.pki("admin.key"))
	if err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(s.pki("ca.crt"))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	return &http.Client{
		Timeout: 10 * time.Second,
		Transport: &http.Transport{
			Proxy:           nil, // the API is on this machine, whatever proxy the user has
			TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{cert}},
		},
	}, nil
}

// nodeReady fails unless the running kubelet has reported the node ready: an older
// report may be of one that has ended.
func (s *sandbox) nodeReady(ctx context.Context) error {
	started, err := os.Stat(s.pidFile("kubelet"))
	if err != nil {
		return err
	}
	text, err := s.get(ctx, "/api/v1/nodes/"+nodeName)
	if err != nil {
		return err
	}
	return checkReady(text, started.ModTime().Truncate(time.Second))
}

func checkReady(nodeJSON []byte, since time.Time) error {
	var node struct {
		Status struct {
			Conditions []struct {
				Type, Status, Message string
				LastHeartbeatTime     time.Time
			}
		}
	}
	if err := json.Unmarshal(nodeJSON, &node); err != nil {
		return err
	}
	for _, c := range node.Status.Conditions {
		switch {
		case c.Type != "Ready":
		case c.Status != "True":
			return fmt.Errorf("node: %s", c.Message)
		case c.LastHeartbeatTime.Before(since):
			return fmt.Errorf("node: its last report, of %s, is of an earlier kubelet", c.LastHeartbeatTime)
		default:
			return nil
		}
	}
	return errors.New("node: no report yet")
}
