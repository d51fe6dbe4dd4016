package cmdline

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

// off is the value that removes a limit, or turns off what is otherwise the default.
const off = "off"

// sizeFlag is a limit of sizes, as rclone reads it: a number without a unit is in KiB, and
// all units are powers of 1024.
type sizeFlag struct{ bytes *int64 } // nil is no limit

func (f *sizeFlag) Type() string { return "SIZE" }

func (f *sizeFlag) String() string {
	if f.bytes == nil {
		return ""
	}
	return strconv.FormatInt(*f.bytes, 10) + "B"
}

var errLimit = errors.New("want a size as rclone reads it: 100 and 100K are 100 KiB, 5M is 5 MiB, 100B is 100 bytes")

func (f *sizeFlag) Set(text string) error {
	if strings.EqualFold(text, off) {
		f.bytes = nil
		return nil
	}
	lower := strings.ToLower(text)
	number := strings.TrimRight(lower, "bikmgtpe")
	shift, ok := map[string]int{
		"": 10, "b": 0, "k": 10, "m": 20, "g": 30, "t": 40, "p": 50, "e": 60,
		"ki": 10, "mi": 20, "gi": 30, "ti": 40, "pi": 50, "ei": 60,
		"kib": 10, "mib": 20, "gib": 30, "tib": 40, "pib": 50, "eib": 60,
	}[lower[len(number):]]
	n, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || strings.Trim(number, "0123456789.") != "" {
		return errLimit
	}
	if n = math.Ldexp(n, shift); n >= math.MaxInt64 {
		return errLimit
	}
	f.bytes = new(int64(n))
	return nil
}

// ageFlag is a limit of ages, as rclone reads it: a number without a unit is in seconds. It
// can also be a point in time.
type ageFlag struct {
	text string // "" is no limit
	age  time.Duration
	at   time.Time // if it is a point in time
}

func (f *ageFlag) Type() string   { return "AGE" }
func (f *ageFlag) String() string { return f.text }

var errAge = errors.New("want an age such as 90s, 12h, 3d, 2w, 6M or 1y, or a time such as 2026-01-31 or 2026-01-31T12:00:00Z")

// longUnits are the units that time.ParseDuration does not have. M is a month.
var longUnits = map[string]time.Duration{
	"d": Day, "w": Week, "M": 30 * Day, "y": 365 * Day, "": time.Second,
}

func (f *ageFlag) Set(text string) error {
	if strings.EqualFold(text, off) {
		*f = ageFlag{}
		return nil
	}
	if span, err := ParseDuration(text); err == nil {
		*f = ageFlag{text: text, age: span}
		return nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", time.DateOnly} {
		if at, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			*f = ageFlag{text: text, at: at}
			return nil
		}
	}
	number := strings.TrimRight(text, "dwMy")
	unit, ok := longUnits[text[len(number):]]
	n, err := strconv.ParseFloat(number, 64)
	span := n * float64(unit)
	if !ok || err != nil || strings.Trim(number, "0123456789.") != "" || span >= math.MaxInt64 {
		return errAge
	}
	*f = ageFlag{text: text, age: time.Duration(span)}
	return nil
}

// limit returns the time of modification at which a file has the age, or zero if there is
// no limit.
func (f *ageFlag) limit(now time.Time) time.Time {
	switch {
	case f.text == "":
		return time.Time{}
	case !f.at.IsZero():
		return f.at
	}
	return now.Add(-f.age)
}
