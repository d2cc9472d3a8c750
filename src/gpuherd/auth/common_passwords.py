"""Common passwords: common words, keyboard rows, digits, the account's name; alone, twice, or with digits.

A list of whole passwords would be long and have gaps: nearly all common passwords of ten characters or more are one or
two of these words with digits or punctuation around them.
"""

from __future__ import annotations

import re

__all__ = ["is_common"]

_WORDS = frozenset(
    """
    password passwort passwd passord parola parool contrasena motdepasse senha wachtwoord heslo haslo pass pwd
    passcode secret geheim letmein letmeinnow welcome willkommen bienvenue hello helloworld login logon access
    accesso enter open opensesame admin administrator root toor superuser sysadmin sysop user username guest test
    tester testing demo default changeme changeit changethis temp temporary temppass initial start begin server
    system service support office company manager master boss king queen prince princess lord ninja samurai shadow
    ghost angel devil demon god jesus christ heaven trustno trust nobody whatever nothing something anything
    everything iloveyou ilove loveyou love lover lovely loveme forever always together family mother father mommy
    daddy mama papa baby babygirl babyboy girl boy brother sister friend friends bestfriend sweetheart honey sugar
    cookie candy chocolate cheese banana orange apple cherry lemon peach pumpkin butter coffee pepper ginger
    cinnamon vanilla monkey dragon tiger lion eagle falcon hawk bear wolf horse pony bunny rabbit puppy doggy kitty
    kitten mouse hamster turtle dolphin shark spider snake chicken butterfly unicorn phoenix football fussball
    soccer baseball basketball hockey golf tennis volleyball softball swimming skateboard snowboard player gamer
    game games gaming winner champion legend hero superman batman spiderman ironman hulk joker starwars startrek
    skywalker vader jedi yoda matrix neo gandalf frodo hobbit pokemon pikachu naruto mario zelda minecraft fortnite
    roblox counterstrike warcraft starcraft diablo doom quake liverpool arsenal chelsea barcelona madrid realmadrid
    juventus bayern dortmund lakers yankees cowboys steelers eagles packers patriots mustang ferrari porsche
    mercedes corvette camaro harley yamaha honda toyota nissan subaru audi bmw volvo jaguar michael michelle
    jennifer jessica ashley amanda nicole daniel andrew joshua matthew anthony robert thomas william charlie george
    jordan hunter taylor austin justin brandon tyler alexander nicholas christopher jonathan benjamin samantha
    elizabeth victoria stephanie melissa heather danielle patricia barbara margaret maria marina natasha alexandra
    sophie sophia emily anna hannah sarah laura julia martin peter stefan andreas markus sebastian florian summer
    winter spring autumn sommer herbst sunshine sunset sunrise moonlight starlight rainbow thunder lightning snow
    rain storm ocean mountain river forest flower rose lily daisy jasmine diamond crystal silver golden gold money
    dollar million rich lucky happy smile freedom peace liberty america canada england london paris berlin germany
    deutschland france italy espana mexico brasil india china japan russia moscow chicago boston dallas texas
    florida california newyork internet computer laptop keyboard windows linux ubuntu debian apache mysql oracle
    postgres database network router cisco security hacker hacked google facebook twitter instagram youtube amazon
    samsung iphone android nokia nvidia geforce radeon intel cuda gpu gpus gpuherd cluster compute hpc slurm nodes
    university institute research laboratory science student professor school college january february march april
    june july august september october november december monday tuesday wednesday thursday friday saturday sunday
    music guitar piano drummer metallica slipknot nirvana beatles rockstar rocknroll hiphop eminem batista
    undertaker killer sniper soldier warrior knight pirate cowboy rebel outlaw gangster player1 blahblah asdf asdfgh
    asdfjkl qwerty qwertz azerty zxcvbn qazwsx qweasd asdzxc abc abcd abcde abcdef abcdefg abcdefgh abcdefghij
    abcdefghijk xyz aaa zzz one two three onetwothree
    """.split()  # noqa: SIM905 - a list of strings would be four times as long
)
_ROWS = (
    "1234567890",
    "0987654321",
    "qwertyuiop",
    "qwertzuiop",
    "azertyuiop",
    "asdfghjkl",
    "zxcvbnm",
    "yxcvbnm",
    "abcdefghijklmnopqrstuvwxyz",
    "1q2w3e4r5t6y7u8i9o0p",
    "1qaz2wsx3edc4rfv5tgb6yhn7ujm",
    "qazwsxedcrfvtgbyhnujm",
    "q1w2e3r4t5y6u7i8o9p0",
)
_WALKS = tuple(row for forth in _ROWS for row in (forth, forth[::-1]))
_LEET = str.maketrans("0134578@$!", "oleastbasi")
_SHORTEST_WALK = 3
_LONGEST_NUMBER = 16
_LOOKED_AT = 64
"""Letters from the start that are looked at: the time that a look takes grows with more than the square of them."""


def is_common(password: str, name: str) -> bool:
    """Tell whether a password is one of the first that someone who guesses would try."""
    typed = password[:_LOOKED_AT].casefold()
    if typed.isdigit() and len(typed) < _LONGEST_NUMBER:
        return True
    own = re.sub(r"[\W_]", "", name.casefold())
    inner = re.sub(r"^[\W\d_]+|[\W\d_]+$", "", typed)
    return any(_is_made_of_words(spelled, own) for spelled in (typed, inner.translate(_LEET)))


def _is_made_of_words(typed: str, own: str) -> bool:
    """Tell whether it consists of at most two common words, digits and punctuation."""
    letters = re.sub(r"[\W_]", "", typed)
    for core in {letters, letters.strip("0123456789"), re.sub(r"\d", "", letters)}:
        if not core or _is_known(core, own) or _is_walked(core):
            return True
        if any(_is_known(core[:cut], own) and _is_known(core[cut:], own) for cut in range(1, len(core))):
            return True
    return False


def _is_known(word: str, own: str) -> bool:
    return word in _WORDS or (bool(own) and word == own) or (len(word) >= _SHORTEST_WALK and _is_walk(word))


def _is_walk(word: str) -> bool:
    """Tell whether the word is part of a keyboard row, or one key repeated."""
    return len(set(word)) == 1 or any(word in walk for walk in _WALKS)


def _is_walked(core: str) -> bool:
    """Tell whether the whole consists of parts of keyboard rows, or of one short part repeated."""
    for size in range(1, len(core) // 2 + 1):
        if size <= 4 and core == (core[:size] * len(core))[: len(core)]:
            return True
    place = 0
    while place < len(core):
        ends = [end for end in range(place + _SHORTEST_WALK, len(core) + 1) if _is_walk(core[place:end])]
        if not ends:
            return False
        place = ends[-1]
    return True
