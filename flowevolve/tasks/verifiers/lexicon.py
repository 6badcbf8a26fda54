"""Word lists that some constraints refer to. The list of verbs is a sample; the others are nearly complete."""

from __future__ import annotations

CONJUNCTIONS = frozenset(
    """
    and but for nor or so yet
    """.split()
)
PRONOUNS = frozenset(
    """
    i me my mine myself you your yours yourself yourselves he him his himself she her hers herself it its itself
    we us our ours ourselves they them their theirs themselves this that these those who whom whose which what
    anyone anybody anything everyone everybody everything someone somebody something nobody nothing none each
    both all few many several one another other others
    """.split()
)
STOP_WORDS = frozenset(
    """
    a about above after again against all am an and any are as at be because been before being below between
    both but by can did do does doing don down during each few for from further had has have having he her here
    hers herself him himself his how i if in into is it its itself just me more most my myself no nor not now of
    off on once only or other our ours ourselves out over own same she should so some such than that the their
    theirs them themselves then there these they this those through to too under until up very was we were what
    when where which while who whom why will with you your yours yourself yourselves
    """.split()
)
NAMES = """
    Emma Liam Sophia Jackson Olivia Noah Ava Lucas Isabella Mason Mia Ethan Charlotte Alexander Amelia Benjamin
    Harper Leo Zoe Daniel Chloe Samuel Lily Matthew Grace Owen Abigail Gabriel Ella Jacob Scarlett Nathan
    Victoria Elijah Layla Nicholas Audrey David Hannah Christopher Penelope Thomas Nora Andrew Aria Joseph
    Claire Ryan Stella Jonathan
""".split()
VERBS = frozenset(
    """
    accept add aim allow apply ask assess avoid be become begin believe build buy calculate call carry change
    check choose combine come compare consider continue convert cook create cut decide define describe design
    determine develop discover discuss do draw eat embrace enjoy ensure establish evaluate examine expand expect
    explain explore express feel fill find focus follow gather get give go grow have help hold identify imagine
    implement improve include increase install introduce investigate join keep know lead learn leave let list
    listen live look love make manage measure meet mix move need note observe offer open organize picture place
    plan play prepare present produce protect provide pull push put read recall recognize reduce reflect
    remember remove replace research review run save say see seek select sell send set share show solve speak
    start step stop study support take talk teach tell test think transform travel try turn understand use
    utilize visit visualize wait walk watch win wonder work write
    """.split()
)
CAPITALS_BY_LATITUDE = """
    Reykjavik Helsinki Oslo Tallinn Stockholm Riga Moscow Copenhagen Vilnius Minsk Dublin Berlin Amsterdam
    Warsaw London Brussels Kyiv Prague Luxembourg Paris Vienna Bratislava Budapest Vaduz Chisinau Bern Ljubljana
    Zagreb
""".split()
"""European capitals north of 45 degrees, from north to south."""
