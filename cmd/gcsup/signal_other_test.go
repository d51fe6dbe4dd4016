//go:build !unix

package main

import "os"

func unixSignal(string) os.Signal { return nil }
