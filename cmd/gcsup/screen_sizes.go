package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"gcsup/upload"
)

// sizeUnits are the units of storedText, largest first.
var sizeUnits = []struct {
	name  string
	bytes int64
}{{"EiB", 1 << 60}, {"PiB", 1 << 50}, {"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}

// storedShare is storedText with the percentage, if size is known.
func storedShare(stored, size int64) string {
	if size < 0 {
		return storedText(stored, size)
	}
	return fmt.Sprintf("%s (%d%%)", storedText(stored, size), storedPercent(stored, size))
}

// storedText returns how much of size bytes is stored, in the unit of size, such as
// "19 of 100 MiB". It rounds down stored, so that only a complete upload reads as
// complete. A part that would read as 0 has a unit of its own.
func storedText(stored, size int64) string {
	if size < 0 {
		return bytesText(stored)
	}
	name, unit := unitOf(size)
	part, whole := inUnit(stored, unit), inUnit(size, unit)
	if part == "0" && stored > 0 {
		own, n := unitOf(stored)
		part = inUnit(stored, n) + " " + own
	}
	for digits := 1; part == whole && stored < size && digits < 10; digits++ {
		part, whole = withDigits(stored, unit, digits), withDigits(size, unit, digits)
	}
	return fmt.Sprintf("%s of %s %s", part, whole, name)
}

// roundedDown returns n as bytesText does, but rounded down as storedText: both describe one offset.
func roundedDown(n int64) string {
	name, unit := unitOf(n)
	digits := 0
	if unit > 1 && n/unit < 10 {
		digits = 1
	}
	return withDigits(n, unit, digits) + " " + name
}

// withDigits returns n in units, rounded down to that many digits after the point.
func withDigits(n, unit int64, digits int) string {
	scale := math.Pow10(digits)
	return strconv.FormatFloat(math.Floor(float64(n)/float64(unit)*scale)/scale, 'f', digits, 64)
}

// rangeText returns storedText, or a range such as "0 to 17 of 57 MiB" if more bytes
// were sent than the service acknowledged: it may store them.
func rangeText(acknowledged, sent, size int64) string {
	if size < 0 {
		return storedText(acknowledged, size)
	}
	name, unit := unitOf(size)
	from, to := inUnit(acknowledged, unit), inUnit(min(sent, size), unit)
	if from == to {
		return storedText(acknowledged, size)
	}
	return fmt.Sprintf("%s to %s of %s %s", from, to, inUnit(size, unit), name)
}

// unitOf returns the largest unit that is not larger than n.
func unitOf(n int64) (name string, bytes int64) {
	for _, u := range sizeUnits {
		if n >= u.bytes {
			return u.name, u.bytes
		}
	}
	return "B", 1
}

// inUnit returns n in units, rounded down to two digits or to a whole number.
func inUnit(n, unit int64) string {
	v := float64(n) / float64(unit)
	if v < 10 {
		v = math.Floor(v*10) / 10
	} else {
		v = math.Floor(v)
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// storedPercent returns the part of size that is stored, rounded down.
func storedPercent(stored, size int64) int64 {
	return int64(float64(stored) / float64(max(size, 1)) * 100)
}

// inSizes returns the text of an error for people: the bytes of an interrupted
// upload become "19 of 100 MiB are stored". size is that of the object, or negative
// if it is not known. file is false for a stream. text contains the error's own
// text.
func inSizes(text string, err error, size int64, file bool) string {
	e, ok := errors.AsType[*upload.InterruptedError](err)
	if !ok {
		return text
	}
	stored := bytesText(e.Committed) + " were stored" // a stream cannot be resumed
	if file {
		stored = rangeText(e.Committed, e.Sent, size) + " are stored"
	}
	return strings.Replace(text, fmt.Sprintf("%d bytes acknowledged of %d sent", e.Committed, e.Sent), stored, 1)
}
