package main

import (
	"crypto/sha256"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// digests are those of all files below some folders, by path.
func digests(folders []string) (map[string][sha256.Size]byte, error) {
	all := map[string][sha256.Size]byte{}
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			all[path] = sha256.Sum256(text)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// difference are the paths that are in one only, or not the same in both.
func difference(a, b map[string][sha256.Size]byte) []string {
	var paths []string
	for path, digest := range a {
		if other, ok := b[path]; !ok || other != digest {
			paths = append(paths, path)
		}
	}
	for path := range b {
		if _, ok := a[path]; !ok {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}
