package main

import (
	"errors"
	"strconv"

	"gcsup/upload"
)

// jobsFlag is --jobs: how many files are processed at a time, or 0 for as many as raise the
// throughput.
type jobsFlag int

func (j *jobsFlag) Type() string { return "" }

// Values returns the word that a shell offers.
func (j *jobsFlag) Values() []string { return []string{"auto"} }

func (j jobsFlag) String() string {
	if j == 0 {
		return "auto"
	}
	return strconv.Itoa(int(j))
}

func (j *jobsFlag) Set(text string) error {
	n, err := strconv.Atoi(text)
	if text == "auto" {
		n, err = 0, nil
	}
	if err != nil || n < 1 && text != "auto" {
		return errors.New("want a number of files from 1, or auto")
	}
	*j = jobsFlag(n)
	return nil
}

// options returns the library's options for the number.
func (j jobsFlag) options() upload.BatchOptions {
	return upload.BatchOptions{Jobs: int(j)}
}
