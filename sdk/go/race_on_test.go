//go:build race

package envai

const raceDetector = true
