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

// parallelFlag is --parallel: a number of connections, or one of the constants.
type parallelFlag int

const (
	parallelOff  parallelFlag = 0
	parallelAuto parallelFlag = -1
)

func (p *parallelFlag) Type() string { return "" }

func (p parallelFlag) String() string {
	switch p {
	case parallelOff:
		return "off"
	case parallelAuto:
		return "auto"
	}
	return strconv.Itoa(int(p))
}

func (p *parallelFlag) Set(text string) error {
	switch text {
	case "off":
		*p = parallelOff
		return nil
	case "auto":
		*p = parallelAuto
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxParallel {
		return fmt.Errorf("want a number of connections from 1 to %d, auto, or off", maxParallel)
	}
	*p = parallelFlag(n)
	return nil
}

// parts returns the library's option, or nil for one connection.
func (p parallelFlag) parts(join upload.JoinBy) *upload.Parts {
	switch {
	case p == parallelAuto:
		return &upload.Parts{Auto: true, Join: join}
	case p > 1:
		return &upload.Parts{Connections: int(p), Join: join}
	}
	return nil
}
