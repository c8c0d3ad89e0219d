package main

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"
)

// defaultGroups are the groups of an option file that are read.
var defaultGroups = []string{"client", "client-server", "client-mariadb", "dbbench"}

// defaultOptions are the options of it that are of interest.
var defaultOptions = []string{"user", "password", "host", "port", "socket", "ssl-ca", "ssl-cert", "ssl-key"}

// readDefaults reads a MySQL option file; no path is an empty one. An error never shows
// a line of it.
//
// https://dev.mysql.com/doc/refman/en/option-files.html
func readDefaults(path string) (map[string]string, error) {
	options := map[string]string{}
	if path == "" {
		return options, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	group := ""
	lines := bufio.NewScanner(f)
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		switch {
		case line == "" || line[0] == '#' || line[0] == ';':
		case line[0] == '!':
			return nil, fmt.Errorf("%s:%d: !include is not followed; name the file itself", path, number)
		case line[0] == '[':
			name, _, ok := strings.Cut(line[1:], "]")
			if !ok {
				return nil, fmt.Errorf("%s:%d: the name of the group has no end", path, number)
			}
			group = strings.TrimSpace(name)
		case slices.Contains(defaultGroups, group):
			name, value, _ := strings.Cut(line, "=")
			name = strings.ReplaceAll(strings.TrimSpace(name), "_", "-")
			if slices.Contains(defaultOptions, name) {
				options[name] = unquote(strings.TrimSpace(value))
			}
		}
	}
	return options, lines.Err()
}

// escapes are those that option files know.
var escapes = strings.NewReplacer(`\b`, "\b", `\t`, "\t", `\n`, "\n", `\r`, "\r", `\\`, `\`, `\s`, " ")

// unquote takes the quotes, a comment and the escapes from a value.
func unquote(value string) string {
	if len(value) > 1 && (value[0] == '"' || value[0] == '\'') {
		if end := strings.LastIndexByte(value, value[0]); end > 0 {
			return escapes.Replace(value[1:end])
		}
	}
	if i := strings.IndexByte(value, '#'); i >= 0 {
		value = strings.TrimSpace(value[:i])
	}
	return escapes.Replace(value)
}
