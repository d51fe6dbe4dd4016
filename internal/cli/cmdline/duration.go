package cmdline

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// Units that time.ParseDuration does not have.
const (
	Day  = 24 * time.Hour
	Week = 7 * Day
)

// ErrSpan is the error of Parse and of a flag.
var ErrSpan = errors.New("want a duration with its unit, such as 90s, 12h or 3d")

// ParseDuration is [time.ParseDuration] with two more units, which come before the others: w is 7
// days, and d is 24 hours. The result is not negative.
func ParseDuration(text string) (time.Duration, error) {
	rest, total := text, 0.0
	for _, u := range []struct {
		unit string
		span time.Duration
	}{{"w", Week}, {"d", Day}} {
		number, after, found := strings.Cut(rest, u.unit)
		if !found {
			continue
		}
		n, err := strconv.ParseFloat(number, 64)
		if err != nil || strings.Trim(number, "0123456789.") != "" {
			return 0, ErrSpan
		}
		rest, total = after, total+n*float64(u.span)
	}
	var span time.Duration
	if rest != "" || text == "" {
		var err error
		if span, err = time.ParseDuration(rest); err != nil || span < 0 {
			return 0, ErrSpan
		}
	}
	if total > float64(1<<62) || span > 1<<62 {
		return 0, ErrSpan
	}
	return time.Duration(total) + span, nil
}

// Duration is the value of a flag such as 12h or 3d.
type Duration time.Duration

// DurationVar adds a flag whose value is in p.
func DurationVar(fs *pflag.FlagSet, p *time.Duration, name string, value time.Duration, usage string) {
	*p = value
	fs.Var((*Duration)(p), name, usage)
}

// Type names the type in the help.
func (f *Duration) Type() string { return "DURATION" }

// String returns the value as Set reads it.
func (f *Duration) String() string {
	if *f == 0 {
		return "0" // pflag then shows no default
	}
	return time.Duration(*f).String()
}

// Set parses text.
func (f *Duration) Set(text string) error {
	span, err := ParseDuration(text)
	if err != nil {
		return err
	}
	*f = Duration(span)
	return nil
}
