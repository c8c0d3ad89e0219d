package main

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// status prints components, node and pods. It fails unless all is well.
func (s *sandbox) status(ctx context.Context, w io.Writer) error {
	healthy := true
	for _, name := range daemons {
		d, err := s.readDaemon(name)
		switch {
		case err != nil:
			fmt.Fprintf(w, "%-24s down\n", name)
			healthy = false
		case !d.alive():
			fmt.Fprintf(w, "%-24s dead (was pid %d; see %s)\n", name, d.pid, s.logFile(name))
			healthy = false
		default:
			fmt.Fprintf(w, "%-24s pid %d\n", name, d.pid)
		}
	}
	if !healthy {
		return errors.New("the sandbox is not up; run: sandbox up")
	}
	fmt.Fprintf(w, "\nAPI https://%s:%d, kubelet port %d, kubeconfig %s\n\n", nodeIP, apiPort, kubeletPort, s.kubeconfig())
	for _, args := range [][]string{{"get", "nodes"}, {"get", "pods", "-A"}} {
		text, err := s.kubectl(ctx, args...)
		if err != nil {
			return err
		}
		fmt.Fprintln(w, text)
	}
	return s.nodeReady(ctx)
}
