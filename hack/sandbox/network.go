package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
)

// chain holds the sandbox's own iptables rules.
const chain = "DBBENCH-SANDBOX"

// forwardRules keep the pods on the machine: they reach each other and the node, and
// nothing beyond it.
var forwardRules = [][]string{
	{"-s", podCIDR, "-d", podCIDR, "-j", "ACCEPT"},
	{"-s", podCIDR, "-j", "DROP"},
	{"-d", podCIDR, "-j", "DROP"},
}

// foreignAddress finds an address of the machine's that lies in the sandbox's ranges,
// as with another cluster. Addresses by interface.
func foreignAddress(addresses map[string][]net.Addr) error {
	for _, cidr := range []string{podCIDR, serviceCIDR} {
		_, ours, err := net.ParseCIDR(cidr)
		if err != nil {
			return err
		}
		for link, all := range addresses {
			for _, a := range all {
				ip, ok := a.(*net.IPNet)
				// The host's end of each pod's link has the node's own address.
				if ok && ours.Contains(ip.IP) && ip.String() != nodeIP+"/32" {
					return fmt.Errorf("interface %s has the address %s, and the sandbox uses %s: free that range, or use a cluster of your own (make demo CLUSTER=current)", link, ip, cidr)
				}
			}
		}
	}
	return nil
}

func checkAddresses() error {
	links, err := net.Interfaces()
	if err != nil {
		return err
	}
	addresses := map[string][]net.Addr{}
	for _, link := range links {
		// One that goes away meanwhile is in nobody's way.
		addresses[link.Name], _ = link.Addrs()
	}
	return foreignAddress(addresses)
}

// network makes the node's address and the rules.
func (s *sandbox) network(ctx context.Context) error {
	if err := checkAddresses(); err != nil {
		return err
	}
	if err := exec.CommandContext(ctx, "ip", "link", "show", bridge).Run(); err != nil {
		if err := s.command(ctx, "ip", "link", "add", bridge, "type", "bridge"); err != nil {
			return err
		}
	}
	// Without a port a bridge is down, but its address serves on this machine.
	if err := s.command(ctx, "ip", "address", "replace", nodeIP+"/32", "dev", bridge); err != nil {
		return err
	}
	if err := s.command(ctx, "ip", "link", "set", bridge, "up"); err != nil {
		return err
	}
	if err := os.WriteFile(sysctlFile("net/ipv4/ip_forward"), []byte("1"), 0o644); err != nil {
		return err
	}
	if exec.CommandContext(ctx, "iptables", "-w", "-n", "-L", chain).Run() == nil {
		return nil
	}
	if err := s.command(ctx, "iptables", "-w", "-N", chain); err != nil {
		return err
	}
	for _, rule := range forwardRules {
		if err := s.command(ctx, "iptables", append([]string{"-w", "-A", chain}, rule...)...); err != nil {
			return err
		}
	}
	return s.command(ctx, "iptables", "-w", "-I", "FORWARD", "-j", chain)
}

// removeNetwork takes away what network, kube-proxy and the CNI plugins made. Chains
// of theirs that were there before up are somebody else's and stay.
func (s *sandbox) removeNetwork(ctx context.Context, keepKube bool) error {
	var failures error
	if exec.CommandContext(ctx, "ip", "link", "show", bridge).Run() == nil {
		failures = s.command(ctx, "ip", "link", "delete", bridge)
	}
	for _, family := range []string{"iptables", "ip6tables"} {
		failures = errors.Join(failures, s.removeChains(ctx, family, keepKube))
	}
	return failures
}

func (s *sandbox) removeChains(ctx context.Context, family string, keepKube bool) error {
	dump, _ := exec.CommandContext(ctx, family+"-save").Output() // a machine without this family has no rules of it
	script := removalScript(string(dump), keepKube)
	if script == "" {
		return nil
	}
	cmd := exec.CommandContext(ctx, family+"-restore", "-w", "--noflush")
	cmd.Stdin = strings.NewReader(script)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s-restore: %w: %s", family, err, out)
	}
	return nil
}

// removalScript turns a dump of all rules into the input of iptables-restore that
// removes the sandbox's chains, and the rules elsewhere that jump to them. keepKube
// leaves chains of Kubernetes and CNI alone.
func removalScript(dump string, keepKube bool) string {
	ours := func(name string) bool {
		return name == chain || !keepKube && (strings.HasPrefix(name, "KUBE-") || strings.HasPrefix(name, "CNI-"))
	}
	var script, rules, drops []string
	flush := func() {
		script = append(script, rules...)
		script = append(script, drops...)
		rules, drops = nil, nil
	}
	table := ""
	for line := range strings.Lines(dump) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "*"):
			table = line
		case strings.HasPrefix(line, ":"):
			if name, _, _ := strings.Cut(line[1:], " "); ours(name) {
				rules = append(rules, ":"+name+" - [0:0]") // declares it, and so empties it
				drops = append(drops, "-X "+name)
			}
		case strings.HasPrefix(line, "-A "):
			fields := strings.Fields(line)
			if !ours(fields[1]) && jumpsTo(fields, ours) {
				rules = append(rules, "-D "+line[len("-A "):])
			}
		case line == "COMMIT":
			if len(rules) > 0 {
				script = append(script, table)
				flush()
				script = append(script, "COMMIT")
			}
		}
	}
	if len(script) == 0 {
		return ""
	}
	return strings.Join(script, "\n") + "\n"
}

func jumpsTo(rule []string, ours func(string) bool) bool {
	for i, field := range rule[:len(rule)-1] {
		if field == "-j" && ours(rule[i+1]) {
			return true
		}
	}
	return false
}
