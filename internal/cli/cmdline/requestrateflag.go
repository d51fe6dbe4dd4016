package cmdline

import (
	"errors"
	"strconv"
	"strings"

	"gcsup/upload"
)

// requestRateFlag is --request-rate: a number of requests per second, or off. The zero value is the
// default, a rate after the first 429.
type requestRateFlag struct {
	perSecond float64 // 0 if there is no limit
	off       bool
}

func (f *requestRateFlag) Type() string { return "" }

// Values returns the words that the shell offers.
func (f *requestRateFlag) Values() []string { return []string{off} }

func (f *requestRateFlag) String() string {
	switch {
	case f.off:
		return off
	case f.perSecond == 0:
		return ""
	}
	return strconv.FormatFloat(f.perSecond, 'f', -1, 64)
}

// maxRequestRate is more than any program can make.
const maxRequestRate = 1e9

var errRequestRate = errors.New("want a number of requests per second from 1, such as 500, or off")

func (f *requestRateFlag) Set(text string) error {
	if strings.EqualFold(text, off) {
		*f = requestRateFlag{off: true}
		return nil
	}
	n, err := strconv.ParseFloat(strings.TrimSuffix(text, "/s"), 64)
	if err != nil || !(n >= 1 && n <= maxRequestRate) { // false for NaN
		return errRequestRate
	}
	*f = requestRateFlag{perSecond: n}
	return nil
}

// rates returns the library's option.
func (f *requestRateFlag) rates() *upload.RequestRates {
	if f.off {
		return upload.NoRequestRates
	}
	rates := new(upload.RequestRates)
	rates.Limit(f.perSecond)
	return rates
}
