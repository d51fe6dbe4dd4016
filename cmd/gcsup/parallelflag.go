package main

import (
	"fmt"
	"strconv"

	"gcsup/upload"
)

// joinBy has the values of --parallel-by.
var joinBy = map[string]upload.JoinBy{"": upload.ByEither, "multipart": upload.ByMultipart, "compose": upload.ByCompose}

// maxParallel is the largest value of --parallel.
const maxParallel = 256

// parallelFlag is --parallel: a number of connections, or 0 for off.
type parallelFlag int

func (p *parallelFlag) Type() string { return "" }

func (p *parallelFlag) String() string {
	if *p == 0 {
		return "off"
	}
	return strconv.Itoa(int(*p))
}

func (p *parallelFlag) Set(text string) error {
	if text == "off" {
		*p = 0
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxParallel {
		return fmt.Errorf("want a number of connections from 1 to %d, or off", maxParallel)
	}
	*p = parallelFlag(n)
	return nil
}
