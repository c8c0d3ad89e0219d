//go:build !linux

package engine

// Default is the engine that is best here.
func Default() Engine { return Goroutines{} }
